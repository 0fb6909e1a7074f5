package jobnodes

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/encoding/protodelim"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire"
)

// errNoJob is for who is in no job, or in one that has no file of nodes.
var errNoJob = errors.New("this is to be run in a job of qsub")

// jobNodes are the lines of the file of nodes of the job that this runs in.
func jobNodes() ([]string, error) {
	text, err := os.ReadFile(os.Getenv("PBS_NODEFILE"))
	if err != nil || os.Getenv(spawnVariable) == "" {
		return nil, errNoJob
	}
	return strings.Fields(string(text)), nil
}

// spawnVariable names the socket by which a job runs something on its machines.
const spawnVariable = "ROOST_REACH"

// maxSpawnOutput bounds what comes by it at once, in bytes.
const maxSpawnOutput = 4 << 20

// runOnNodes runs a command on machines of the job around it, and returns the exit status
// of each. A signal gives 128 and its number.
func runOnNodes(c *frame.Invocation, order *wire.ReachCall, nodes []string) ([]int32, error) {
	conn, err := dialSpawnSocket(os.Getenv(spawnVariable))
	if err != nil {
		return nil, fmt.Errorf("the job's node: %w: %w", roost.Unavailable, err)
	}
	defer conn.Close()
	for _, line := range order.GetLines() {
		order.Nodes = append(order.Nodes, nodes[line])
	}
	if _, err := protodelim.MarshalTo(conn, order); err != nil {
		return nil, err
	}
	codes, left := make([]int32, len(order.GetLines())), len(order.GetLines())
	in := bufio.NewReader(conn)
	for left > 0 {
		out := &wire.ReachOutput{}
		err := (protodelim.UnmarshalOptions{MaxSize: maxSpawnOutput}).UnmarshalFrom(in, out)
		switch place := int(out.GetPlace()); {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return codes, fmt.Errorf("%w: the node in whose queue the job is does not answer any more",
				roost.Unavailable)
		case err != nil:
			return codes, err
		case out.GetError() != "" && !out.GetEnded():
			return codes, errors.New(document.PrintableText(out.GetError()))
		case place >= len(codes):
		case out.GetEnded():
			left--
			codes[place] = out.GetCode()
			if out.GetSignal() != 0 {
				codes[place] = 128 + out.GetSignal()
			}
			if out.GetError() != "" {
				fmt.Fprintf(c.Stderr, "%s: %s: %s\n", c.Command.Name, nodes[order.GetLines()[place]],
					document.PrintableText(out.GetError()))
			}
		case out.GetStderr():
			_, _ = c.Stderr.Write(out.GetData())
		default:
			_, _ = c.Stdout.Write(out.GetData())
		}
	}
	return codes, nil
}

// dialSpawnSocket connects to a socket by a short name: its path may be longer than an
// address can be.
func dialSpawnSocket(path string) (net.Conn, error) {
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return net.Dial("unix", path)
	}
	defer dir.Close()
	return net.Dial("unix", fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path)))
}

// spawnFailed says why nothing could be run.
func spawnFailed(c *frame.Invocation, err error) error {
	fmt.Fprintf(c.Stderr, "%s: %v\n", c.Command.Name, err)
	return frame.ExitError(1)
}

// worstExit is the exit status of a command that has run in several places.
func worstExit(codes []int32) error {
	for _, code := range codes {
		if code != 0 {
			return frame.ExitError(int(code))
		}
	}
	return nil
}
