// Package daemon has what every daemon of Roost does at its start. Daemons log in one
// format, tell the master that they are ready, and do not pass descriptors of the master
// on to their children.
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
// reports that it serves.
const ReadyFD = "ROOST_READY_FD"

// Logger returns the logger of a daemon, with one line a record on standard error. Log
// records of the packages below, such as refused connections, go there, too. Its level
// follows the file that LogLevelsVariable names, if there is one.
func Logger(name string) *slog.Logger {
	usual, level := slog.LevelInfo, new(slog.LevelVar)
	if os.Getenv("ROOST_DEBUG") != "" {
		usual = slog.LevelDebug
	}
	level.Set(usual)
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})).With("daemon", name)
	slog.SetDefault(log)
	if path := os.Getenv(LogLevelsVariable); path != "" {
		s := &levelSwitch{daemon: name, path: path, usual: usual, level: level, log: log}
		s.follow()
	}
	return log
}

// SignalContext returns a context that ends with SIGTERM or SIGINT. A daemon calls it
// before it starts anything, so that the descriptor for ReportReady does not leak into
// its children.
func SignalContext() (context.Context, context.CancelFunc) {
	if fd, err := strconv.Atoi(os.Getenv(ReadyFD)); err == nil {
		syscall.CloseOnExec(fd)
	}
	return signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
}

// ReportReady tells the master, if it started this daemon, that the daemon serves.
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
