# irace on any scenario: Rscript irace_pulls.R FOLDER SCENARIO BUDGET CUTOFF SEED. Every run is one `captime pull`. The last line of stdout is
# `ANSWER {"configuration": ..., "spent": ..., "runs": ...}`.
arguments <- commandArgs(TRUE)
folder <- arguments[1]; path <- arguments[2]; budget <- as.numeric(arguments[3]); cutoff <- as.numeric(arguments[4]); seed <- as.integer(arguments[5])
suppressPackageStartupMessages(library(irace))
parameters <- readParameters(file.path(folder, "parameters.txt"))
instances <- readLines(file.path(folder, "instances.txt"))
values <- function(configuration) {
  given <- configuration[parameters$names]
  given <- given[!is.na(unlist(given))]
  paste0(names(given), "=", sapply(given, function(value) format(value, digits = 15, trim = TRUE)))
}
number <- function(text, key) as.numeric(sub(paste0('.*"', key, '":([-0-9.eE]+).*'), "\\1", text))
spent <- 0; runs <- 0
runner <- function(experiment, scenario) {
  bound <- if (is.null(experiment$bound) || is.na(experiment$bound)) cutoff else min(cutoff, experiment$bound)
  said <- system2(Sys.getenv("CAPTIME"), c("pull", shQuote(path), shQuote(values(experiment$configuration)), "--limit", paste0(bound, "s"),
    "--instance", shQuote(experiment$instance), "--seed", "1"), stdout = TRUE)
  solved <- grepl('"outcome":"rewarded"', said)
  used <- if (solved) number(said, "consumption") else bound
  used <- max(used, 1e-4)
  spent <<- spent + used; runs <<- runs + 1
  list(cost = if (!solved && bound >= cutoff) 10 * cutoff else used, time = used)
}
scenario <- list(targetRunner = runner, instances = instances, maxTime = budget, seed = seed, deterministic = TRUE,
  capping = TRUE, boundMax = cutoff, boundPar = 10, testType = "t-test", trainInstancesDir = "", logFile = "", debugLevel = 0,
  boundDigits = 3, budgetEstimation = 0.05, minMeasurableTime = 0.001)
log <- capture.output(answer <- irace(scenario = scenario, parameters = parameters))
best <- answer[1, ]
pairs <- strsplit(values(best), "=", fixed = TRUE)
json <- paste0('"', sapply(pairs, `[`, 1), '": "', sapply(pairs, function(pair) paste(pair[-1], collapse = "=")), '"', collapse = ", ")
cat("ANSWER {\"configuration\": {", json, "}, \"spent\": ", spent, ", \"runs\": ", runs, "}\n", sep = "")
