package ranks

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"github.com/roost-batch/roost/internal/pmi"
)

// Arguments is the command line that Main reads.
type Arguments struct {
	pmi.NodeSpec
	Socket  string // by which the startd is reached
	Program []string
}

// fixedArguments is how many there are before the program.
const fixedArguments = 6

// Command returns the command line, beginning with the path of roost-ranks.
func (a *Arguments) Command(path string) []string {
	return append([]string{path, a.KVSName, strconv.Itoa(a.FirstRank), strconv.Itoa(a.Ranks), strconv.Itoa(a.Size),
		strconv.Itoa(a.Nodes), a.Socket}, a.Program...)
}

// maxRanks bounds the ranks of a task and of a gang.
const (
	maxTaskRanks = 4096
	maxGangRanks = 1 << 20
)

// parseArguments reads a command line.
func parseArguments(args []string) (a Arguments, err error) {
	if len(args) < 2+fixedArguments {
		return a, errors.New("usage: roost-ranks KVSNAME FIRST RANKS SIZE NODES SOCKET PROGRAM [ARGUMENT...] " +
			"(a startd runs it)")
	}
	a.KVSName, a.Socket, a.Program = args[1], args[6], args[7:]
	for i, to := range []*int{&a.FirstRank, &a.Ranks, &a.Size, &a.Nodes} {
		if *to, err = strconv.Atoi(args[2+i]); err != nil {
			return a, fmt.Errorf("argument %d: %w", 2+i, err)
		}
	}
	if a.Ranks < 1 || a.Ranks > maxTaskRanks || a.FirstRank < 0 || a.Size > maxGangRanks || a.Nodes < 1 ||
		a.FirstRank+a.Ranks > a.Size || len(a.KVSName) >= pmi.MaxKVSName {
		return a, fmt.Errorf("%d ranks from %d of %d are not possible", a.Ranks, a.FirstRank, a.Size)
	}
	return a, nil
}

// failedStatus is the exit code where no rank can be started, as a shell has it.
const failedStatus = 127

// Main is the program. It returns the exit code.
func Main(args []string) int {
	a, err := parseArguments(args)
	if err != nil {
		fmt.Fprintf(os.Stderr, "roost-ranks: %v\n", err)
		return failedStatus
	}
	return newTaskRanks(a).run()
}
