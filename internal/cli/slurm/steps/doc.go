// Package steps is the commands of the Slurm dialect that run something in an allocation:
// srun, and the agent that it has on the other machines of a job.
//
// Inside a job, srun starts the tasks of its own machine itself and reaches the others by
// the socket of the job ($ROOST_REACH): for each there is a command roost step-agent,
// whose streams carry frames (package internal/slurm/step). A step of one machine needs
// no daemon, so it goes on while daemons are restarted, and is checkpointed with the job.
package steps
