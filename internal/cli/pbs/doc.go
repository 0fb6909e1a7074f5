// Package pbs holds the PBS commands: qsub, qstat, qdel, qmgr, pbsnodes and the others.
//
// They are links to roost, take the options of OpenPBS, or of Torque where the user or
// the node says so, and print what scripts and other programs expect to read. Exit
// statuses are PBS's error numbers modulo 256. What the options mean and how the output
// looks is in internal/pbs; here is what asks the schedd and the cell.
package pbs
