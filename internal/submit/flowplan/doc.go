// Package flowplan compiles what the nodes of a flow run. It reads each file that JOB
// commands name once, with the user's rights, so that a schedd reads none.
//
//	nodes ──▶ those of one file ──▶ those of one shape ──▶ one template, and values
//	            and directory          of variables           for each node
//
// All nodes of a file are compiled as one array whose items are the variables of the
// nodes. The naive way, a translation for each node, costs a millisecond for each of a
// million nodes. But a variable of a submit description is text: "-n 5" is two arguments,
// and "1,2" two files. So the value of a variable is taken apart. Blanks, commas, quotes
// and the like are its shape, which is the same for all nodes of a template. The words
// between them are columns.
//
// A variable that decides what the job is, such as the condition of an if or the number
// of jobs, is a shape as a whole: each of its values has a template of its own.
//
// The package is pure: files are read only through [submit.FileAccess].
package flowplan
