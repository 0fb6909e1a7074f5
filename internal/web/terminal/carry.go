package terminal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/coder/websocket"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// readBrowser reads messages and never waits for the shell: the reports among them are
// what output waits for.
func (r *relay) readBrowser(ctx context.Context) error {
	for {
		kind, data, err := r.conn.Read(ctx)
		switch {
		case err != nil:
			return errBrowserGone
		case kind == websocket.MessageBinary:
			err = r.addInput(data)
		default:
			err = r.readReport(data)
		}
		if err != nil {
			return err
		}
	}
}

// addInput takes keys for the shell. The browser sends no more than the window.
func (r *relay) addInput(data []byte) error {
	r.session.NoteUse(time.Now())
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.input)+len(data) > inputWindow {
		return errProtocol
	}
	r.input = append(r.input, data...)
	wake(r.hasWork)
	return nil
}

// readReport reads what the browser says of its window and of what it has shown.
func (r *relay) readReport(text []byte) error {
	var m browserMessage
	if json.Unmarshal(text, &m) != nil || m.Rows > maxSize || m.Columns > maxSize || (m.Rows == 0) != (m.Columns == 0) {
		return errProtocol
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.Shown < 0 || m.Shown > r.unshown {
		return errProtocol
	}
	r.unshown -= m.Shown
	wake(r.hasRoom)
	if m.Rows > 0 {
		r.resize = &wire.ShellInput{Rows: m.Rows, Columns: m.Columns}
		wake(r.hasWork)
	}
	return nil
}

// sendInput passes on keys and sizes, no faster than the shell takes them.
func (r *relay) sendInput(ctx context.Context) error {
	for {
		select {
		case <-r.hasWork:
		case <-ctx.Done():
			return nil
		}
		for {
			next, size := r.nextInput()
			if next == nil {
				break
			}
			if err := r.shell.Send(next); errors.Is(err, io.EOF) {
				return ctxEnd(ctx) // why, the other direction says
			} else if err != nil {
				return err
			}
			if size == 0 {
				continue
			}
			taken := func(ctx context.Context) error { return r.tell(ctx, serverMessage{Taken: size}) }
			if err := r.write(ctx, taken); err != nil {
				return err
			}
		}
	}
}

// ctxEnd waits for the end that another direction finds.
func ctxEnd(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// nextInput returns the next message to the shell, and how much of the input it has; nil:
// there is none.
func (r *relay) nextInput() (next *wire.ShellInput, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if next = r.resize; next != nil {
		r.resize = nil
		return next, 0
	}
	if size = min(len(r.input), inputChunk); size == 0 {
		return nil, 0
	}
	next = &wire.ShellInput{Data: append([]byte(nil), r.input[:size]...)}
	if r.input = r.input[size:]; len(r.input) == 0 {
		r.input = nil
	}
	return next, size
}

// sendOutput passes on what the shell writes, no faster than the browser shows it.
func (r *relay) sendOutput(ctx context.Context) error {
	for {
		if err := r.awaitRoom(ctx); err != nil {
			return err
		}
		out, err := r.shell.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return errNoEnd
		case err != nil:
			return err
		}
		if data := out.GetData(); len(data) > 0 {
			r.addUnshown(len(data))
			send := func(ctx context.Context) error { return r.conn.Write(ctx, websocket.MessageBinary, data) }
			if err := r.write(ctx, send); err != nil {
				return err
			}
		}
		if out.GetEnded() {
			r.status = serverMessage{Ended: true, Code: out.GetCode(), Signal: out.GetSignal()}
			return errShellEnded
		}
	}
}

// errNoEnd is a conversation with a task that ends without the status of the shell.
var errNoEnd = fmt.Errorf("terminal: %w: the conversation with the task broke off", roost.Unavailable)

func (r *relay) addUnshown(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unshown += n
}

// awaitRoom waits until the browser has shown enough of the output.
func (r *relay) awaitRoom(ctx context.Context) error {
	for {
		r.mu.Lock()
		full := r.unshown >= outputWindow
		r.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-r.hasRoom:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
