package provision

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/provision/driver"
	"github.com/roost-batch/roost/internal/provision/plan"
	"github.com/roost-batch/roost/internal/provision/provider"
)

// scriptText returns the shell script of an allocation. It has no secret: the token is in
// a file that only the user can read, and pilots read it there.
func scriptText(s *provider.Settings, a *plan.Allocation, dir string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("#!/bin/sh")
	line("# Pilots of a Roost pool: allocation %s of provider %s.", a.Key, s.Name)
	line("umask 077")
	line("roost_end() { # says how it ends, as other systems forget it at once or do not say it")
	line("	echo $1 > %s", driver.QuotePath(dir+"/"+endFile(a.Key)))
	line("	exit $1")
	line("}")
	line("unset SLURM_EXPORT_ENV # srun is to give the pilots the environment of this script")
	if s.Before != "" {
		line("%s", strings.TrimRight(s.Before, "\n"))
		line("roost_status=$?")
		line("if [ $roost_status -ne 0 ]; then")
		line("	echo \"roost: the lines before the pilot failed: exit status $roost_status\" >&2")
		line("	roost_end $roost_status")
		line("fi")
	}
	line("trap 'roost_ended=1; [ -z \"$roost_pilot\" ] || kill -TERM $roost_pilot' TERM INT USR1 USR2")
	line("%s &", pilotLine(s, a, dir))
	line("roost_pilot=$!")
	line("[ -z \"$roost_ended\" ] || kill -TERM $roost_pilot")
	line("while :; do # a signal interrupts the wait, and the pilot drains")
	line("	wait $roost_pilot")
	line("	roost_status=$?")
	line("	kill -0 $roost_pilot 2>/dev/null || break")
	line("done")
	if s.After != "" {
		line("%s", strings.TrimRight(s.After, "\n"))
	}
	line("roost_end $roost_status")
	return b.String()
}

// pilotLine is the command line that runs the pilots of an allocation, one on each node.
func pilotLine(s *provider.Settings, a *plan.Allocation, dir string) string {
	var words []string
	if a.Nodes > 1 {
		switch s.Kind {
		case provider.Slurm:
			n := fmt.Sprint(a.Nodes)
			words = append(words, "srun", "--overlap", "--kill-on-bad-exit=0", "--ntasks="+n, "--nodes="+n,
				"--ntasks-per-node=1")
		case provider.PBS:
			words = append(words, "pbsdsh", "--") // one on each chunk, and these are scattered
		}
	}
	words = append(words, s.Wrap...)
	program := s.Program
	if program == "" {
		program = defaultProgram(s)
	}
	words = append(words, program, "pilot", "--token-file", dir+"/"+tokenFile(a.Key), "--walltime",
		fmt.Sprintf("%ds", int(a.Walltime.Seconds())), "--margin", fmt.Sprintf("%ds", int(s.Margin.Seconds())),
		"--idle", fmt.Sprintf("%ds", int(s.Idle.Seconds())), "--first-idle",
		fmt.Sprintf("%ds", int(s.FirstTask.Seconds())), "--key", a.Key, "--provider", s.Name)
	if s.WithoutWalltime {
		words = append(words, "--any-length")
	}
	if cpus := s.Node.Resources.CPU; cpus > 0 { // no more than was asked for
		words = append(words, "--cpus", cpus.String())
	}
	if memory := s.Node.Resources.Memory; memory > 0 {
		words = append(words, "--memory", fmt.Sprintf("%dMiB", memory/roost.MiB))
	}
	for i, w := range words {
		words[i] = driver.QuotePath(w)
	}
	return strings.Join(words, " ")
}

// defaultProgram is the program of pilots if the settings name none. Where the outer
// system's commands run on this machine, its nodes probably see the same files.
func defaultProgram(s *provider.Settings) string {
	const name = "roost"
	if len(s.Via) > 0 {
		return name
	}
	own, err := os.Executable()
	if err != nil {
		return name
	}
	return filepath.Join(filepath.Dir(own), name)
}

// tokenFile is the name of the file with an allocation's token, on the outer system.
func tokenFile(key string) string { return key + ".token" }

// endFile is the name of the file there in which an allocation writes its exit status.
func endFile(key string) string { return key + ".end" }

// outputFile is the name of the file there that gets what an allocation prints.
func outputFile(key string) string { return key + ".out" }

// allocationFiles are the names of all files that an allocation may have there.
func allocationFiles(key string) []string {
	return []string{tokenFile(key), endFile(key), outputFile(key), key + ".sh", key + ".log"}
}

// defaultDirectory is where the files of allocations are if the settings do not say so.
const defaultDirectory = "~/.roost-pilots"

func directoryOf(s *provider.Settings) string {
	if s.Directory != "" {
		return s.Directory
	}
	return defaultDirectory
}
