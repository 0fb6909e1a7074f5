// Package jobspec has the jobs that are submitted, whatever they were made of: a job file
// (package submit), a script of PBS, or the flags of a command. It does not know the
// language of job files, so a program that needs only jobs starts faster.
package jobspec
