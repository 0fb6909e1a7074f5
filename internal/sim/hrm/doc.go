// Package hrm repeats the simulation study of HRM (Tang et al., a hybrid resource
// scheduling framework for heterogeneous clusters, 2022, §6.1). A cell of 1,050 machines
// of 16 cores gets 60, 120 or 180 jobs of 40 containers. Either one central scheduler
// places them, or six distributed ones whose conflicts a coordinator resolves. The study
// measures how long a job waits until its containers are placed, how busy the scheduler
// is, and how many proposals conflict.
//
// # What is production code
//
// The production code makes the decisions. The leader is [negotiator.LoopCore]: it takes
// requests, machine ads and replies, plans with package match, commits the grants of each
// cycle to the ledger before they are sent, and signs each grant. The six schedds that
// place their jobs themselves run [scheddNode.SelfPlacer] on their copies of the cell. In
// both styles the jobs are at the same six schedds, and only the setting "distributed"
// differs.
//
// What is simulated: the schedds' queues and dispatch (each job is one request of its own
// owner, so identical jobs save nothing), machines (which accept what fits, and run
// containers for a random time), the network (each message takes the same time), and the
// disks (an entry is committed a fixed time after it was proposed).
//
// # What time is
//
// Time is virtual. The leader and each schedd do one step at a time, and [StepCosts] says
// how long each step takes. That is either the processor time of the actual call on the
// present machine, or, for runs that must be reproducible, a fixed number of microseconds
// plus a fixed number for each item. Measured costs are recorded, and a run that replays
// the costs of another is the same in every event.
package hrm
