package steps

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/slurm/getopt"
)

// SbcastCommand returns sbcast.
func SbcastCommand() *frame.Command {
	return &frame.Command{
		Name: "sbcast", Group: frame.GroupSlurm, Summary: "copy a file to the machines of the job", RawArgs: true,
		MaxOperands: -1, Run: runSbcast, Synopsis: "[-f] [-p] SOURCE DESTINATION",
		Description: "Inside a job, copies a file to each machine of the job, as a step of one task on each. A file " +
			"that is there is replaced with -f only. The copy has the permissions of the file, and with -p its time.",
		Examples: []frame.Example{
			{Line: "sbcast -f settings /tmp/", Description: "a file that may be there, under its own name"},
			{Line: "sbcast data.bin /tmp/data.bin", Description: "a file of input where each task finds it"},
		},
	}
}

// receiveScript takes in a file, of which nobody sees a part. Its arguments are the name,
// whether a file that is there is replaced, the permissions, and the time or nothing.
const receiveScript = `set -e
if [ "$2" = 0 ] && [ -e "$1" ]; then echo "sbcast: error: $SLURMD_NODENAME: $1: File exists" >&2; exit 1; fi
part=$1.$SLURMD_NODENAME.$$
trap 'rm -f "$part"' EXIT
cat >"$part"
chmod "$3" "$part"
if [ -n "$4" ]; then touch -d "@$4" "$part"; fi
mv -f "$part" "$1"
trap - EXIT`

// runSbcast is sbcast.
func runSbcast(c *frame.Invocation) error {
	required := getopt.Required
	table := getopt.Table{Options: []getopt.Option{{Name: "force", Letter: 'f'}, {Name: "preserve", Letter: 'p'},
		{Name: "compress", Letter: 'C', Argument: getopt.Optional}, {Name: "jobid", Letter: 'j', Argument: required},
		{Name: "size", Letter: 's', Argument: required}, {Name: "fanout", Letter: 'F', Argument: required},
		{Name: "timeout", Letter: 't', Argument: required}, {Name: "send-libs", Argument: getopt.Optional},
		{Name: "exclude", Argument: required}, {Name: "treewidth", Argument: required},
		{Name: "no-allocation", Letter: 'Z'}, {Name: "verbose", Letter: 'v'}, {Name: "version", Letter: 'V'},
		{Name: "help"}, {Name: "usage"}}}
	given, operands, err := table.Parse(c.Args)
	has := func(name string) bool { _, ok := getopt.Last(given, name); return ok }
	refuse := func(format string, a ...any) error {
		fmt.Fprintf(c.Stderr, "sbcast: error: "+format+"\n", a...)
		return frame.ExitError(1)
	}
	switch {
	case err != nil:
		fmt.Fprint(c.Stderr, getopt.Message("sbcast", err))
		return frame.ExitError(1)
	case has("version"):
		fmt.Fprintln(c.Stdout, slurmVersion)
		return nil
	case has("help"), has("usage"):
		c.PrintHelp(c.Stdout, c.Command)
		return nil
	case len(operands) != 2:
		return refuse("Need two file names, have %d names", len(operands))
	case !isInAllocation(c):
		return refuse("Command only valid from within SLURM job")
	}
	file, err := os.Open(c.AbsolutePath(operands[0]))
	if err != nil {
		return refuse("Can't open `%s`: %v", operands[0], errors.Unwrap(err))
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return refuse("`%s` is not a regular file", operands[0])
	}
	to := operands[1]
	if strings.HasSuffix(to, "/") {
		to += path.Base(operands[0])
	}
	force, at := "0", ""
	if has("force") {
		force = "1"
	}
	if has("preserve") {
		at = strconv.FormatInt(info.ModTime().Unix(), 10)
	}
	return broadcast(c, file, "sh", "-c", receiveScript, "sbcast", c.AbsolutePath(to), force,
		fmt.Sprintf("%o", info.Mode().Perm()), at)
}

// broadcast runs a command once on each machine of the job, and each reads the file.
func broadcast(c *frame.Invocation, file io.Reader, command ...string) error {
	job, err := readAllocation(c)
	if err != nil {
		fmt.Fprintf(c.Stderr, "sbcast: error: %v\n", err)
		return frame.ExitError(1)
	}
	n := strconv.Itoa(len(job.machines))
	one := *c
	one.Stdin, one.Args = file, append([]string{"--overlap", "-Q", "-N", n, "-n", n, "--ntasks-per-node=1", "-c", "1"},
		command...)
	return runSrun(&one, nil)
}
