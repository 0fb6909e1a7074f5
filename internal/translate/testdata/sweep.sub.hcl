# Made of sweep.sub, which was written for HTCondor, by roost translate; see roost-job(5) and
# roost-coming-from(7).
#
# Not carried over:
#   line 16: transfer_input_files    = common/, $(infile), https://example.org/x.tgz
#       only URLs of objects, s3://BUCKET/KEY, are fetched; let the program do it.
#   line 24: accounting_group_user = ann
#       The job belongs to the user who submits it.
#   line 26: requst_gpus = 1
#       Nothing uses it. Did you mean request_gpus?
#
# Different here:
#   line 7: error      = $(base)/err
#       Each task needs a file of its own: its number was added.
#   line 12: requirements   = (OpSys == "LINUX") && HasAVX2 && TARGET.Memory > 2000
#       Machines do not have HasAVX2 by themselves here: their administrators add it in the node file, see
#       roost-node(5), or the expression has to ask for something else.
#   line 16: transfer_input_files    = common/, $(infile), https://example.org/x.tgz
#       A directory is brought as it is, with its name; with a / at the end HTCondor brings what is in it.
#   line 21: periodic_remove = (JobStatus == 2) && (time() - EnteredCurrentStatus > 3600)
#       It becomes a walltime: the task is ended after that time, and has failed.
#   line 25: +ProjectName = "sweep"
#       It becomes a label, a text for people, for scripts and for the conditions of the job.

job "sweep" {
  for_each = files("*.dat")

  executable = "sim.sh"
  arguments  = ["--seed", "${task.index}", "--in", "${each.value}", "--note", "it's \"fine\""]

  getenv = ["PATH", "HOME"]
  environment = {
    A = "1"
    B = "x y"
    C = "${task.index}"
  }

  stdout   = "run/${task.job}/out.${task.index}"
  stderr   = "run/${task.job}/err.${task.index}"
  user_log = "sim.log"
  transfer = "auto"
  inputs   = ["common", "${each.value}"]

  cpus     = 2
  memory   = "1536MiB"
  disk     = "500MiB"
  walltime = "1h"

  requirements = "(OpSys == \"LINUX\") && HasAVX2 && TARGET.Memory > 2000"
  rank         = "Mips"
  limits       = ["matlab:2", "db"]

  group   = "physics.optics"
  retries = 3
  labels = {
    ProjectName = "sweep"
  }
  mail_on = ["abort"]
}
# condor: 1 jobs, 22 carried, 3 lost, 5 differ
