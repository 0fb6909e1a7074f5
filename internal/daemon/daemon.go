// Package daemon is what every daemon of Roost does at its start: log in one shape, tell
// the master that it is ready, and never leave a descriptor of the master's to its
// children.
package daemon

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
)

// ReadyFD is the environment variable with the number of the descriptor on which a daemon
// says that it serves.
const ReadyFD = "ROOST_READY_FD"

// Logger returns the logger of that daemon: one line a record, on standard error. What
// the packages below have to say, such as who was refused, goes there, too.
func Logger(name string) *slog.Logger {
	level := slog.LevelInfo
	if os.Getenv("ROOST_DEBUG") != "" {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})).With("daemon", name)
	slog.SetDefault(log)
	return log
}

// SignalContext returns a context that ends with SIGTERM or SIGINT. A daemon calls it
// before it starts anything, so that the descriptor for ReportReady does not leak into
// what it starts.
func SignalContext() (context.Context, context.CancelFunc) {
	if fd, err := strconv.Atoi(os.Getenv(ReadyFD)); err == nil {
		syscall.CloseOnExec(fd)
	}
	return signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
}

// ReportReady tells the master, if there is one that asked, that the daemon serves.
func ReportReady() {
	text := os.Getenv(ReadyFD)
	os.Unsetenv(ReadyFD)
	fd, err := strconv.Atoi(text)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), "ready")
	f.WriteString("ready\n")
	f.Close()
}
