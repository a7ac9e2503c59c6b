# irace on recorded runs: Rscript irace.R FOLDER BUDGET CUTOFF SEED. The last line of stdout is `ANSWER arm spent runs`.
arguments <- commandArgs(TRUE)
folder <- arguments[1]; budget <- as.numeric(arguments[2]); cutoff <- as.numeric(arguments[3]); seed <- as.integer(arguments[4])
suppressPackageStartupMessages(library(irace))
times <- as.matrix(read.csv(file.path(folder, "times.csv"), header = FALSE))
arms <- read.csv(file.path(folder, "arms.csv"), header = FALSE, colClasses = "character")
parameters <- readParameters(file.path(folder, "parameters.txt"))
n <- ncol(arms)
places <- lapply(seq_len(n), function(k) match(arms[[k]], parameters$domain[[k]]))
is_ordered <- parameters$types[paste0("p", seq_len(n))] == "o"
scale <- sapply(seq_len(n), function(k) if (is_ordered[k]) max(1, length(parameters$domain[[k]]) - 1) else 1)

# The recorded arm that is nearest to a configuration: steps between numbers, 0 or 1 between words.
nearest <- function(configuration) {
  distance <- numeric(nrow(arms))
  for (k in seq_len(n)) {
    at <- match(as.character(configuration[[paste0("p", k)]]), parameters$domain[[k]])
    difference <- abs(places[[k]] - at)
    distance <- distance + if (is_ordered[k]) difference / scale[k] else as.numeric(difference > 0)
  }
  which.min(distance)
}

spent <- 0; runs <- 0
runner <- function(experiment, scenario) {
  arm <- nearest(experiment$configuration)
  time <- times[as.integer(experiment$id.instance), arm]
  bound <- if (is.null(experiment$bound) || is.na(experiment$bound)) cutoff else min(cutoff, experiment$bound)
  used <- min(time, bound)
  spent <<- spent + max(used, 0.01); runs <<- runs + 1
  # A run that was cut off at the full cutoff counts ten times, as everywhere here.
  list(cost = if (time > cutoff && bound >= cutoff) 10 * cutoff else used, time = max(used, 0.01))
}
scenario <- list(targetRunner = runner, instances = seq_len(nrow(times)), maxTime = budget, seed = seed, deterministic = TRUE,
  capping = TRUE, boundMax = cutoff, boundPar = 10, testType = "t-test", trainInstancesDir = "", logFile = "", debugLevel = 0,
  boundDigits = 2, budgetEstimation = 0.05, minMeasurableTime = 0.01)
log <- capture.output(answer <- irace(scenario = scenario, parameters = parameters))
cat("ANSWER", nearest(answer[1, ]), spent, runs, "\n")
