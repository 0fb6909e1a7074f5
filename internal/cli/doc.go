// Package cli is what people type: every command of roost, and the PBS commands that are
// links to it.
//
// A command is a [command] in a table, with its flags, its examples and what it does. The
// same table feeds the parser, the help, the completion of words in the shell, and the
// test that holds the manual pages to it. Commands speak to the schedd over its unix
// socket and to nothing else; job files and qsub lines are parsed here, in the user's own
// process and under the user's own rights.
//
// What a program may read stands on standard output: ids, tables, logs, JSON. What is
// meant for people, such as progress, hints and errors, stands on standard error. Colour,
// bars and tables cut to the width of the window appear on terminals only.
package cli
