// Package jobfile is the commands that make jobs of a job file, or of flags that mean the
// same: roost submit and roost run. They are apart from the other commands about jobs
// because the language of job files delays the start of a program.
package jobfile
