package names

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/balancer"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

const (
	defaultProxyListen = "127.0.0.1:8080"
	defaultProxyWait   = 10 * time.Second
	defaultProxyDrain  = 30 * time.Second
)

// ProxyCommand returns roost proxy: forward TCP connections to the ready tasks of a
// service.
func ProxyCommand() *frame.Command {
	return &frame.Command{
		Name: "proxy", Group: frame.GroupSee, Summary: "forward connections to the ready tasks of a service",
		Synopsis: "JOB[:PORT]", MinOperands: 1, MaxOperands: 1, OperandName: "a service", Run: runProxy,
		Description: "Listens on an address of this machine and forwards each TCP connection to a ready task of the " +
			"service. It follows the names of the tasks: one that leaves gets no new connections. PORT is the name " +
			"of a port, and needed if the service has several.",
		Examples: []frame.Example{
			{Line: "roost proxy web", Description: "the tasks of your service web at 127.0.0.1:8080"},
			{Line: "roost proxy hub.ann:http --listen 0.0.0.0:80",
				Description: "port http of ann's service hub, for all"},
		},
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "listen", Value: defaultProxyListen, Usage: "listen on `ADDRESS`"},
			&ucli.StringFlag{Name: "balance", Value: "connections",
				Usage: "choose the task with the fewest `connections`, or take turns (turns)"},
			&ucli.StringFlag{Name: "wait", Value: "10s", Usage: "how long a client waits for a ready task: `TIME`"},
			&ucli.StringFlag{Name: "drain", Value: "30s",
				Usage: "how long connections may go on after SIGTERM: `TIME`"},
		},
	}
}

// proxyTarget parses the operand: a service, and the name of a port after a colon.
func proxyTarget(operand string) (q *scheddapi.NamesQuery, port string, err error) {
	job, port, named := strings.Cut(operand, ":")
	if named && port == "" {
		return nil, "", frame.KindErrorf(roost.Invalid, "%s: the name of a port is missing after the colon", operand)
	}
	if q, err = parseJob(job); err != nil {
		return nil, "", err
	}
	q.Watch = true
	return q, port, nil
}

func runProxy(c *frame.Invocation) error {
	q, port, err := proxyTarget(c.Args[0])
	if err != nil {
		return err
	}
	server, err := proxyConfig(c)
	if err != nil {
		return err
	}
	address := c.StringFlag("listen")
	l, err := net.Listen("tcp", address)
	if err != nil {
		return frame.KindErrorf(roost.NoOutput, "--listen %s: %v", address, err)
	}
	defer l.Close()
	fmt.Fprintf(c.Stdout, "listening on %s\n", l.Addr())

	ctx, cancel := context.WithCancelCause(c.Context)
	defer cancel(nil)
	signals, restore := c.NotifyInterrupts()
	defer restore()
	go func() {
		select {
		case <-signals:
			cancel(nil)
			restore() // the next one ends the program at once
		case <-ctx.Done():
		}
	}()
	backends := newBackendTable(server.Pool, port, server.Log)
	defer backends.stop()
	go func() { cancel(followNames(c, q, backends.update)) }()
	if err := balancer.Serve(ctx, l, server); err != nil {
		return err
	}
	if cause := context.Cause(ctx); cause != context.Canceled {
		return cause
	}
	return nil
}

// proxyConfig reads the flags.
func proxyConfig(c *frame.Invocation) (config balancer.Config, err error) {
	method := balancer.LeastConnections
	switch c.StringFlag("balance") {
	case "connections":
	case "turns":
		method = balancer.RoundRobin
	default:
		return config, frame.KindErrorf(roost.Invalid, "--balance %s: write connections or turns",
			c.StringFlag("balance"))
	}
	config = balancer.Config{Pool: balancer.NewPool(method), Wait: defaultProxyWait, Drain: defaultProxyDrain,
		Log: slog.New(slog.NewTextHandler(c.Stderr, nil))}
	for name, to := range map[string]*time.Duration{"wait": &config.Wait, "drain": &config.Drain} {
		if text := c.StringFlag(name); text != "" {
			if *to, err = roost.ParseDuration(text); err != nil {
				return config, frame.KindErrorf(roost.Invalid, "--%s: %v", name, err)
			}
		}
	}
	return config, nil
}
