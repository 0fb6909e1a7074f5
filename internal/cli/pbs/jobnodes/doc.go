// Package jobnodes is the PBS commands about the nodes of a job: pbsdsh and pbs_tmrsh run
// programs on them, pbs_hostn tells their names. They need the network's names and the
// messages of startds, which the other PBS commands do not.
package jobnodes
