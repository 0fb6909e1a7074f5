# Made of policy.sub, which was written for HTCondor, by roost translate; see roost-job(5) and
# roost-coming-from(7).
#
# Different here:
#   line 5: +MaxHours = 4
#       It becomes a label, a text for people, for scripts and for the conditions of the job.
#   line 8: on_exit_hold_subcode = 3
#       A hold has a sentence and no number of its own.

job "policy" {
  executable = "/bin/echo"

  labels = {
    MaxHours = "4"
  }

  periodic_hold        = "JobStatus == 2 && MemoryUsage > 2 * RequestMemory"
  periodic_hold_reason = "more than twice its memory"
  periodic_release     = "NumHolds < 3 && (time() - EnteredCurrentStatus) > 600"
  periodic_remove      = "RemoteWallClockTime > MaxHours * 3600"
  on_exit_hold         = "ExitBySignal && ExitSignal == 11"
  on_exit_hold_reason  = "it crashed"
  on_exit_remove       = "(NumJobCompletions > 3) || (ExitCode =?= 0) || (ExitCode =?= 7)"
}
# condor: 1 jobs, 12 carried, 0 lost, 2 differ
