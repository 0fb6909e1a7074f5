package names

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// runInterval is the shortest time between two writes of a file. So it is between two
// runs of the command, too.
const runInterval = time.Second

// outputWriter writes endpoints in another form than a list.
type outputWriter struct {
	render  func(endpointTable) ([]byte, error)
	file    string // empty: standard output
	command string
	written []byte // the last text
	isFirst bool
}

// newOutputWriter returns the writer that the flags ask for, or nil.
func newOutputWriter(c *frame.Invocation) (*outputWriter, error) {
	w := &outputWriter{command: c.StringFlag("run"), isFirst: true}
	if w.file = c.StringFlag("out"); w.file != "" {
		w.file = c.AbsolutePath(w.file)
	}
	file, port := c.StringFlag("template"), c.StringFlag("targets")
	switch {
	case file != "" && port != "":
		return nil, frame.UsageErrorf("--template and --targets are two forms of output; use one")
	case file == "" && port == "" && (w.file != "" || w.command != ""):
		return nil, frame.UsageErrorf("--out and --run need --template or --targets")
	case file == "" && port == "":
		return nil, nil
	case w.command != "" && w.file == "":
		return nil, frame.UsageErrorf("--run needs --out: it runs when the file has changed")
	case port != "":
		w.render = func(t endpointTable) ([]byte, error) { return targetsText(t, port) }
		return w, nil
	}
	text, err := os.ReadFile(c.AbsolutePath(file))
	if err != nil {
		return nil, frame.KindErrorf(roost.NoInput, "--template: %v", err)
	}
	parsed, err := template.New(filepath.Base(file)).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, templateError(err)
	}
	w.render = func(t endpointTable) ([]byte, error) {
		var out bytes.Buffer
		if err := parsed.Execute(&out, templateData(t)); err != nil {
			return nil, templateError(err)
		}
		return out.Bytes(), nil
	}
	return w, nil
}

// templateError reports a mistake in a template. The library's text begins with the file
// and the line.
func templateError(err error) error {
	return frame.KindErrorf(roost.Invalid, "--template: %s\n.Ready and .Endpoints have the tasks, whose fields are in "+
		"roost-names(1) with an example", strings.TrimPrefix(err.Error(), "template: "))
}

// templateData is what a template sees: .Endpoints are all, .Ready those that are ready.
func templateData(t endpointTable) map[string][]document.Endpoint {
	data := map[string][]document.Endpoint{"Endpoints": documentsOf(t), "Ready": {}}
	for _, e := range data["Endpoints"] {
		if e.State == "ready" {
			data["Ready"] = append(data["Ready"], e)
		}
	}
	return data
}

// follow writes the output, and in a watch again after changes, at most once in
// runInterval.
func (w *outputWriter) follow(c *frame.Invocation, q *scheddapi.NamesQuery) error {
	if !q.GetWatch() {
		return followNames(c, q, func(t endpointTable, _ *scheddapi.NamesUpdate) error {
			text, err := w.render(t)
			if err != nil {
				return err
			}
			return w.write(c, text)
		})
	}
	texts, failed := make(chan []byte, 1), make(chan error, 1)
	go func() {
		failed <- followNames(c, q, func(t endpointTable, _ *scheddapi.NamesUpdate) error {
			text, err := w.render(t)
			if err != nil {
				return err
			}
			select { // the newest text replaces one that nobody has taken
			case <-texts:
			default:
			}
			texts <- text
			return nil
		})
	}()
	for {
		select {
		case text := <-texts:
			if err := w.write(c, text); err != nil {
				return err
			}
		case err := <-failed:
			return err
		}
		select {
		case <-time.After(runInterval):
		case err := <-failed:
			return err
		}
	}
}

// write writes a text that differs from the last one, and runs the command.
func (w *outputWriter) write(c *frame.Invocation, text []byte) error {
	if !w.isFirst && bytes.Equal(text, w.written) {
		return nil
	}
	w.isFirst, w.written = false, text
	if w.file == "" {
		_, err := c.Stdout.Write(text)
		return err
	}
	if old, err := os.ReadFile(w.file); err == nil && bytes.Equal(old, text) {
		return nil
	}
	if err := atomicfile.Write(w.file, text, 0o644); err != nil {
		return err
	}
	if w.command == "" {
		return nil
	}
	if err := runCommand(c, w.command); err != nil {
		fmt.Fprintf(c.Stderr, "roost: %s: %v\n", w.command, err)
	}
	return nil
}

// commandTimeout bounds a run of the command: a hanging one would stop all updates.
const commandTimeout = time.Minute

func runCommand(c *frame.Invocation, command string) error {
	ctx, cancel := context.WithTimeout(c.Context, commandTimeout)
	defer cancel()
	run := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	run.Stdout, run.Stderr = c.Stderr, c.Stderr
	return run.Run()
}
