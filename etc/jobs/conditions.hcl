# What becomes of a task under a condition; see CONDITIONS in roost-job(5).
job "conditions" {
  command = ["sh", "-c", "exit $(($$ % 3))"]
  count   = 4
  labels  = { tries = "5" }

  # A run that ends with 2 had no luck: it is made again, at most five times in all.
  on_exit_remove = "ExitCode =!= 2 || NumJobCompletions >= tries"

  # What hangs is held for somebody to look at it, and goes on by itself after an hour.
  periodic_hold        = "JobStatus == 2 && time() - EnteredCurrentStatus > 600 && NumHolds < 2"
  periodic_hold_reason = "it ran for more than 10 minutes"
  periodic_release     = "time() - EnteredCurrentStatus > 3600"
}
