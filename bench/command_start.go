package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/roost-batch/roost/bench/gauge"
)

// Targets of the commands that people and their scripts type all day.
const (
	commandTarget = 3 * time.Millisecond // to start, and print a line
	qsubTarget    = 5 * time.Millisecond
	qsubRate      = 300 // a second, in a loop of a shell
	qsubRuns      = 100
)

// helloProgram is the least that a program in Go does.
const helloProgram = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n"

// measureQsub measures the command in a shell loop, as in scripts.
func (b *poolBencher) measureQsub() error {
	file := filepath.Join(b.dir, "job.sh")
	if err := os.WriteFile(file, []byte(queueWaits), 0o600); err != nil {
		return err
	}
	link := filepath.Join(b.dir, "qsub")
	if err := os.Symlink(b.roost+"-q", link); err != nil {
		return err
	}
	if err := b.measureCommandStart(file); err != nil {
		return err
	}
	var rates gauge.FigureSamples
	for range 3 {
		cmd := exec.CommandContext(b.ctx, "/bin/sh", "-c",
			fmt.Sprintf("i=0; while [ $i -lt %d ]; do %s -h %s || exit 1; i=$((i+1)); done", qsubRuns, link, file))
		cmd.Env, cmd.Dir = append(os.Environ(), "ROOST_DIR="+b.pool.Dir), b.dir
		began := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("qsub: %w\n%s", err, out)
		}
		rates = append(rates, qsubRuns/time.Since(began).Seconds())
	}
	b.addAimedRow("qsub, one after the other in a shell", rates.Median() >= qsubRate,
		fmt.Sprintf("%s%d/s", leastPrefix, qsubRate), "%.0f/s", rates.Median())
	return nil
}

// measureCommandStart measures a command that asks nobody, and qsub. A program that
// prints a line runs in turns with them, as the floor.
func (b *poolBencher) measureCommandStart(job string) error {
	hello := filepath.Join(b.dir, "hello")
	if err := os.WriteFile(hello+".go", []byte(helloProgram), 0o600); err != nil {
		return err
	}
	if out, err := exec.CommandContext(b.ctx, "go", "build", "-o", hello, hello+".go").CombinedOutput(); err != nil {
		return fmt.Errorf("build %s.go: %w\n%s", hello, err, out)
	}
	lines := [][]string{{hello}, {b.roost, "--version"}, {filepath.Join(b.dir, "qsub"), "-h", job}}
	wall, cpu := make([]gauge.DurationSamples, len(lines)), make([]gauge.DurationSamples, len(lines))
	for range qsubRuns {
		for i, line := range lines {
			cmd := exec.CommandContext(b.ctx, line[0], line[1:]...)
			cmd.Env, cmd.Dir = append(os.Environ(), "ROOST_DIR="+b.pool.Dir), b.dir
			began := time.Now()
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%v: %w\n%s", line, err, out)
			}
			wall[i] = append(wall[i], time.Since(began))
			cpu[i] = append(cpu[i], cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
		}
	}
	floor := wall[0].Percentile(50)
	for i, row := range []struct {
		name string
		aim  time.Duration
	}{{"roost --version", commandTarget}, {"qsub of a script", qsubTarget}} {
		p50 := wall[i+1].Percentile(50)
		b.addAimedRow(row.name, p50 <= row.aim, row.aim.String(),
			"p50 %v, CPU %v; %.1f times a Go program that prints a line (%v)", p50, cpu[i+1].Percentile(50),
			float64(p50)/float64(floor), floor)
	}
	return nil
}
