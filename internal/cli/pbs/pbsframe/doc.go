// Package pbsframe holds what all PBS commands share: options as getopt(3) reads them,
// ids of jobs, exit statuses, the dialect and the server of the environment.
//
// Clients of PBS test for exit statuses and for the beginnings of messages, so both are
// those of PBS. The dialect is OpenPBS's or Torque's: what $ROOST_DIALECT names, else
// what the node is set to. PBS_DEFAULT and PBS_SERVER name the schedd that a command asks
// where its operands name none.
package pbsframe
