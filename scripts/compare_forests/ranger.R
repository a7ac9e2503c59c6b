# One fit of ranger, for scripts/compare-forests: CODED TEST_ROWS TREES MTRY NODE FRACTION THREADS SEED OOB.
# CODED is a CSV of numbers with the target first. Prints a line of JSON.
suppressMessages(library(ranger))
arg <- commandArgs(TRUE)
number <- as.numeric(arg[3:8])
coded <- read.csv(arg[1], check.names = FALSE)
test <- scan(arg[2], quiet = TRUE)
x <- coded[-test, -1, drop = FALSE]
y <- coded[-test, 1]
fit <- system.time(forest <- ranger(
  x = x, y = y, num.trees = number[1], mtry = number[2], min.node.size = number[3],
  sample.fraction = number[4], num.threads = number[5], seed = number[6], oob.error = arg[9] == "TRUE"
))
unseen <- coded[test, -1, drop = FALSE]
# The time that predict() spends in R before and after does not count: its compiled part is timed from inside. The time it spends there
# on copying the table and the trees does count, because ranger cannot predict without it.
inside <- c()
compiled <- get("rangerCpp", asNamespace("ranger"))
assignInNamespace("rangerCpp", function(...) {
  start <- as.numeric(Sys.time())
  result <- compiled(...)
  inside <<- c(inside, as.numeric(Sys.time()) - start)
  result
}, "ranger")
predicting <- system.time(for (again in 1:5) predicted <- predict(forest, unseen, num.threads = number[5])$predictions)
leaves <- mean(vapply(forest$forest$child.nodeIDs, function(children) sum(children[[1]] == 0), 0))
rmse <- sqrt(mean((predicted - coded[test, 1])^2))
cat(sprintf(
  '{"rmse": %.6f, "leaves": %.3f, "fit_seconds": %.6f, "fit_cpu_seconds": %.6f, "predict_seconds": %.6f, "predict_call_seconds": %.6f}\n',
  rmse, leaves, fit[["elapsed"]], fit[["user.self"]] + fit[["sys.self"]], median(inside), predicting[["elapsed"]] / 5
))
