// Package submit turns what a user wrote into jobs: job files in HCL ([ParseFile]) and
// command lines ([Command]).
//
// A job is one ClassAd, a number of tasks, and columns. Whatever differs between tasks is
// a column: a list with one text for each task. Strings of the ad refer to columns as
// "$(Name)", so an array of a hundred thousand alike tasks is one small ad, and never a
// hundred thousand of anything:
//
//	arguments = ["--seed=${task.index}", each.value.file]
//	       │ the text is taken apart, nothing is evaluated for each task
//	       ▼
//	Arguments = { "--seed=$(TaskIndex)", "$(file)" }     Columns: file = [ "a.csv", "b.csv", … ]
//
// Only an expression that computes with task.index or each is evaluated once for every
// task, into a column of its own.
//
// What was written is read under the user's own rights and trusted as little as if it
// came from a stranger: its size, its nesting, the work that its expressions do and the
// values they build are bounded before the work is done. Every mistake becomes a
// diagnostic with its place, its cause and its cure ([Format] prints them).
//
// The package is pure: files are looked at only through [Files], and the time is an
// argument.
package submit
