// Package cli is the table of every command that people type: those of roost, and the
// PBS commands, which are links to it.
//
// A command is a [frame.Command] with its flags, its examples and what it does. The same
// table feeds the parser, the help, the completion of words in the shell, and the test
// that compares the manual pages with it. The commands are in one package for each
// family: jobs, pool, admin, node, owner, doctor, terminal, pbs, sim, classad and
// daemons. What they share is in frame. Tests of several families together are here.
//
// Commands speak to the schedd over its unix socket and to nothing else; job files and
// qsub lines are parsed in the user's own process and under the user's own rights.
//
// What a program may read is on standard output: ids, tables, logs, JSON. What is meant
// for people, such as progress, hints and errors, is on standard error. Colour, bars and
// tables cut to the width of the window appear on terminals only.
package cli
