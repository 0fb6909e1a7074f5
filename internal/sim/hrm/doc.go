// Package hrm rebuilds the evaluation by simulator of HRM (Tang et al., a hybrid resource
// scheduling framework for heterogeneous clusters, 2022, §6.1): a cell of 1,050 machines
// of 16 cores, to which 60, 120 and 180 jobs of 40 containers come, placed by one central
// scheduler or by six distributed ones of which a coordinator arbitrates the conflicts.
// What is measured is how long a job waits until its containers have been placed, how
// busy the scheduler is, and how many proposals conflict.
//
// # What is real
//
// The code that runs a pool decides: the leader is [negotiator.LoopCore], which takes
// requests, machines' ads and answers in, plans with package match, has each cycle's
// grants committed to the ledger before they leave, and signs each; the six schedds that
// place themselves are [scheddNode.SelfPlacer] on their copies of the cell. In both
// styles the jobs are at the same six schedds, and the setting "distributed" is all that
// differs.
//
// What is stood for: queues and dispatch of the schedds (each job is one request of an
// owner of its own, so that nothing is saved by jobs that are alike), machines (which
// take what fits, and run containers for a time that is drawn), the network (each message
// takes as long), and the disks (an entry is committed so long after it was proposed).
//
// # What time is
//
// Time is virtual. The leader and each schedd do one thing at a time, and what each of
// these things takes is said by [StepCosts]: either the processor time of the very call
// on the machine where the simulation runs, or, where a run is to come out the same
// everywhere, a stated number of microseconds and so many for each thing that it deals
// with. What was measured is kept, and a run that is given the costs of another one is
// the same in every event.
package hrm
