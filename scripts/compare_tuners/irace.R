# irace, run by tuners.py: Rscript irace.R FOLDER BUDGET CUTOFF SEED. It writes pulls to the pipe FOLDER/pulls, one JSON line each, and reads
# `cost time` from FOLDER/costs. The last line is its answer. irace counts in milliseconds, because its bounds are whole numbers.
arguments <- commandArgs(TRUE)
folder <- arguments[1]; budget <- as.numeric(arguments[2]); cutoff <- as.numeric(arguments[3]); seed <- as.integer(arguments[4])
suppressPackageStartupMessages(library(irace))
pulls <- file(file.path(folder, "pulls"), "w")
costs <- file(file.path(folder, "costs"), "r")
parameters <- readParameters(file.path(folder, "parameters.txt"))
instances <- readLines(file.path(folder, "instances.txt"))

# What irace calls a word may be a number in the scenario.
of <- function(configuration) {
  given <- as.list(configuration[parameters$names])
  given <- given[!is.na(unlist(given))]
  lapply(given, function(value) if (suppressWarnings(is.na(as.numeric(value)))) value else as.numeric(value))
}
json <- function(...) jsonlite::toJSON(list(...), auto_unbox = TRUE, digits = NA)
runner <- function(experiment, scenario) {
  bound <- if (is.null(experiment$bound) || is.na(experiment$bound)) cutoff else min(cutoff, experiment$bound / 1000)
  writeLines(json(configuration = of(experiment$configuration), instance = experiment$instance, bound = bound), pulls)
  flush(pulls)
  said <- 1000 * as.numeric(strsplit(readLines(costs, 1), " ")[[1]])
  list(cost = said[1], time = said[2])
}
default <- jsonlite::fromJSON(file.path(folder, "default.json"))
word <- function(value) if (is.null(value)) NA else if (is.logical(value)) tolower(value) else value
first <- as.data.frame(lapply(parameters$names, function(name) word(default[[name]])), stringsAsFactors = FALSE)
names(first) <- parameters$names
scenario <- list(targetRunner = runner, instances = instances, maxTime = round(1000 * budget), seed = seed, deterministic = TRUE, initConfigurations = first,
  forbiddenFile = file.path(folder, "forbidden.txt"), capping = TRUE, boundMax = round(1000 * cutoff), boundPar = 10, testType = "t-test", trainInstancesDir = "", logFile = "", debugLevel = 0,
  boundDigits = 0, budgetEstimation = 0.05, minMeasurableTime = 0.1)
answer <- irace(scenario = scenario, parameters = parameters)
writeLines(json(answer = of(answer[1, ])), pulls)
close(pulls)
