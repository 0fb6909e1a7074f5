package api

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
)

// sendSignal sends the running tasks of a target a signal, and returns how many it goes
// to. It goes out when the log has it, once: a node that is away does not get it later,
// when it might hit what has changed its mind.
func (act *jobActions) sendSignal(now time.Time, who queue.CallerIdentity, t queue.TaskSelector,
	text string) (n uint32, err error) {
	number, name := signalOf(text)
	events, to, err := act.queue.SignalTasks(now, who, t, name)
	if err != nil {
		return 0, err
	}
	for _, a := range to {
		if act.loop.SendToLazily(act.queue.NodeOf(a), &wire.ToStartd{
			Of: &wire.ToStartd_Signal{Signal: &wire.Signal{Attempt: codec.AttemptRef(a), Signal: uint32(number)}},
		}) {
			n++
		}
	}
	if n == 0 {
		return 0, fmt.Errorf("%v: %w: its node does not answer", t, roost.Unavailable)
	}
	act.loop.CommitEvents(events...)
	return n, nil
}

// maxSignal is the highest number that a signal has on Linux.
const maxSignal = 64

// signalOf reads "USR1", "SIGUSR1", "10" and "" for SIGTERM; no name when it is no
// signal. Signal 0, or NULL, only looks whether there is anybody.
func signalOf(text string) (unix.Signal, string) {
	if n, err := strconv.ParseUint(text, 10, 8); err == nil && n <= maxSignal {
		if name := unix.SignalName(unix.Signal(n)); name != "" {
			return unix.Signal(n), name
		}
		return unix.Signal(n), "signal " + text
	}
	short := strings.TrimPrefix(text, "SIG")
	switch short {
	case "":
		if text == "" {
			return unix.SIGTERM, "SIGTERM"
		}
	case "NULL":
		return 0, "signal 0"
	case "CLD":
		short = "CHLD"
	}
	if n := unix.SignalNum("SIG" + short); n != 0 {
		return n, "SIG" + short
	}
	return 0, ""
}

// pbsRefusal is what PBS has a number for, and Roost no kind.
func pbsRefusal(err error) wire.ActReply_Refusal {
	switch {
	case errors.Is(err, queue.ErrSignal):
		return wire.ActReply_UNKNOWN_SIGNAL
	case errors.Is(err, queue.ErrNotRerunnable):
		return wire.ActReply_NOT_RERUNNABLE
	case errors.Is(err, queue.ErrNoSubjob):
		return wire.ActReply_NO_SUBJOB
	case errors.Is(err, queue.ErrEndedSubjob):
		return wire.ActReply_ENDED_SUBJOB
	case errors.Is(err, queue.ErrRunning):
		return wire.ActReply_RUNS
	case errors.Is(err, queue.ErrWholeJobOnly), errors.Is(err, queue.ErrOneTaskOnly):
		return wire.ActReply_PART
	case errors.As(err, new(*queue.NotReleasableError)):
		return wire.ActReply_NOT_RELEASABLE
	}
	return wire.ActReply_REFUSAL_UNSPECIFIED
}
