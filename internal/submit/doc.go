// Package submit turns a user's input into jobs: job files in HCL ([ParseFile]) and
// command lines ([Command]).
//
// A job is one ClassAd, a number of tasks, and columns. Whatever differs between tasks is
// a column: a list with one text for each task. Strings of the ad refer to columns as
// "$(Name)", so an array of a hundred thousand identical tasks is one small ad and no
// list:
//
//	arguments = ["--seed=${task.index}", each.value.file]
//	       │ the text is split; nothing is evaluated for each task
//	       ▼
//	Arguments = { "--seed=$(TaskIndex)", "$(file)" }
//	Columns: file = [ "a.csv", "b.csv", … ]
//
// Only an expression that computes with task.index or each is evaluated once for every
// task, into a column of its own.
//
// The input is read with the user's own rights, and is not trusted. Its size, its
// nesting, the work of its expressions and the values that they build are bounded before
// the work is done. Every mistake becomes a diagnostic with its place, its cause and its
// remedy ([Format] prints them).
//
// The package is pure: files are accessed only through [FileAccess], and the time is an
// argument.
package submit
