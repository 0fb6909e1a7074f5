// Package driver runs the programs of other batch systems: it submits, queries, finds and
// cancels the allocations of a provisioner.
//
// Each call starts one shell, whose program comes over its standard input. With a command
// line in front, such as ssh and a host, the shell is there. So nothing has to be quoted
// twice, and neither a script nor a secret is in an argument or in the environment, where
// every user of a host can read it.
//
// A submit that failed may have submitted: the outer system took the job, and its answer
// was lost. So an error is only a refusal if the outer system has no job of that name.
package driver
