package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/sim/workload"
	"github.com/roost-batch/roost/internal/submit"
	"github.com/roost-batch/roost/internal/swf"
	"github.com/roost-batch/roost/negotiator/picture"
)

// poolOf reads what is to be run: two files are the lists of the openb trace, and what one is shows at its beginning.
func (c *call) poolOf(args []string) (from simulated, err error) {
	file := args[0]
	if len(args) == 2 {
		return c.traceOf(args)
	}
	var src []byte
	sized := c.given("machines") || c.given("processors")
	err = c.unpacked(file, func(_ string, r io.Reader) error {
		buffered := bufio.NewReader(r)
		head, _ := buffered.Peek(1024)
		switch {
		case picture.Begins(head):
			from, err = c.cellOf(buffered)
		case bytes.HasPrefix(head, []byte("sn,")), bytes.HasPrefix(head, []byte("name,")):
			err = fmt.Errorf("it is a list of the openb trace, of which both are wanted: roost sim run NODES PODS")
		case isLog(head):
			from, err = c.logOf(buffered)
		default:
			src, err = io.ReadAll(io.LimitReader(buffered, roost.MaxJobFileBytes+1))
			if err == nil && len(src) > roost.MaxJobFileBytes {
				err = fmt.Errorf("%w: it has more than %d bytes, which is the most", roost.Exhausted, roost.MaxJobFileBytes)
			}
		}
		return err
	})
	switch {
	case err != nil:
		return from, err
	case sized && (src != nil || !from.asOf.IsZero()):
		return from, usage("%s: it says itself which machines there are; --machines and --processors are for logs", printable(file))
	case src != nil:
		return c.mixOf(file, src)
	}
	return from, nil
}

// traceOf reads the openb trace.
func (c *call) traceOf(args []string) (from simulated, err error) {
	if c.given("processors") {
		return from, usage("%s: it says itself how many processors each node has; --processors is for logs", printable(args[0]))
	}
	nodes, pods, err := c.readTrace(args)
	if err != nil {
		return from, err
	}
	machines := 0
	if c.given("machines") {
		if machines = c.count("machines"); machines < 1 {
			return from, usage("--machines %d: it is 1 or more", machines)
		}
	}
	if from.config, err = workload.FromTrace(nodes, pods, machines, uint64(c.count("seed"))); err != nil {
		err = problem(roost.Invalid, "%s: %s", printable(args[1]), strings.Replace(err.Error(), roost.Invalid.Error()+": ", "", 1))
	}
	return from, err
}

// cellOf reads a checkpoint.
func (c *call) cellOf(r io.Reader) (from simulated, err error) {
	p, err := picture.ReadText(r)
	if err == nil {
		from.config, from.notes, err = workload.FromCell(p, uint64(c.count("seed")))
		from.asOf = p.Now
	}
	if err != nil {
		err = fmt.Errorf("%s", strings.TrimPrefix(err.Error(), roost.Invalid.Error()+": "))
	}
	return from, err
}

// logOf reads a log.
func (c *call) logOf(r io.Reader) (from simulated, err error) {
	log, err := swf.Read(r)
	if err != nil {
		return from, err
	}
	processors := int64(c.count("processors"))
	if !c.given("processors") {
		if processors, err = log.Processors(); err != nil {
			return from, fmt.Errorf("%w; say how many processors the machines have with --processors", err)
		}
	}
	machines := 1
	if c.given("machines") {
		machines = c.count("machines")
	}
	from.config, from.left, err = workload.FromLog(log, processors, machines, uint64(c.count("seed")))
	return from, err
}

// mixOf reads a mix.
func (c *call) mixOf(file string, src []byte) (from simulated, err error) {
	shown := printable(file)
	if file == "-" {
		shown = "standard input"
	}
	mix, diags := submit.ParseMix(src, submit.Options{Filename: shown, Dir: "/", Home: "/", User: "user", Now: time.Unix(0, 0)})
	if diags.HasErrors() {
		width := c.err.width
		if width == 0 {
			width = 100
		}
		io.WriteString(c.stderr, submit.Format(diags, src, width, c.err.colour))
		return from, exit(submit.ExitKind(diags).ExitCode())
	}
	from.config = workload.FromMix(mix, uint64(c.count("seed")))
	return from, nil
}

// isLog reports whether a text begins as a log in the Standard Workload Format does: with a comment of its kind, or with numbers.
func isLog(head []byte) bool {
	first := bytes.TrimLeft(head, " \t\r\n")
	return len(first) > 0 && (first[0] == ';' || first[0] == '-' || first[0] >= '0' && first[0] <= '9')
}
