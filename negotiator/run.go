package negotiator

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/advertise"
	"github.com/roost-batch/roost/internal/auth"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/share"
)

// defaultPeriod is the longest time between two cycles where the node file does not say.
const defaultPeriod = 5 * time.Second

// Run serves as the negotiator of node until ctx ends. A nil identity serves unix sockets only. Its epoch and the usage of submitters are kept in
// the directory negotiator of the node's.
func Run(ctx context.Context, node *config.Node, id *rpc.Identity) error {
	log := daemon.Logger("negotiator")
	if node.Negotiator == nil || len(node.Negotiator.Listen) == 0 {
		return fmt.Errorf("negotiator of %s: %w: it has no address to listen on", node.Name, roost.BadConfig)
	}
	l, err := open(filepath.Join(node.Dir, "negotiator"), node.Negotiator.Cycle, log)
	if err != nil {
		return fmt.Errorf("negotiator: %w", err)
	}
	var listeners []net.Listener
	for _, addr := range node.Negotiator.Listen {
		listener, err := rpc.Listen(addr, 0o600)
		if err != nil {
			for _, l := range listeners {
				l.Close()
			}
			return fmt.Errorf("negotiator: %w", err)
		}
		listeners = append(listeners, listener)
	}
	log.Info("serving", "addresses", node.Negotiator.Listen, "epoch", l.cell.epoch)
	server := rpc.NewServer(id, auth.Methods(), grpc.WaitForHandlers(true))
	return l.serve(ctx, server, listeners, node, id, daemon.Ready)
}

// open reads what is kept in dir, makes the next epoch durable, and returns a loop that was not started.
func open(dir string, period time.Duration, log *slog.Logger) (*loop, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	epoch, err := nextEpoch(dir, time.Now())
	if err != nil {
		return nil, err
	}
	book := share.NewBook(share.HalfLife)
	path := filepath.Join(dir, usageFile)
	text, err := os.ReadFile(path)
	if err == nil {
		err = book.Load(text)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Error("usage is lost, everybody starts anew; the file is kept", "file", path+".bad", "err", err)
		if err := os.Rename(path, path+".bad"); err != nil {
			return nil, err
		}
		book = share.NewBook(share.HalfLife)
	}
	if period <= 0 {
		period = defaultPeriod
	}
	return &loop{
		cell: newCell(epoch, newInventory(), book, log), standing: newStanding(), inbox: make(chan func(time.Time), inboxSize), done: make(chan struct{}),
		period: period, dir: dir, log: log,
	}, nil
}

// serve runs the negotiator on those listeners, which it closes, until ctx ends or something breaks.
func (l *loop) serve(ctx context.Context, server *grpc.Server, listeners []net.Listener, node *config.Node, id *rpc.Identity, ready func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wire.RegisterNegotiatorServer(server, &service{loop: l, name: node.Name, log: l.log})

	l.standing.move(func(p *position) { *p = position{epoch: l.cell.epoch, leads: true, leader: node.Negotiator.Listen[0]} })

	broken := make(chan error, len(listeners)+1)
	var running sync.WaitGroup
	running.Go(func() { broken <- l.run(ctx) })
	running.Go(func() { l.watch(ctx, node, id) })
	running.Go(func() { l.advertise(ctx, node, id) })
	for _, listener := range listeners {
		running.Go(func() { broken <- server.Serve(listener) })
	}
	ready()
	var err error
	select {
	case <-ctx.Done():
	case err = <-broken:
	}
	cancel()
	server.Stop()
	running.Wait()
	for len(broken) > 0 {
		err = errors.Join(err, <-broken)
	}
	return err
}

// watch follows the machines. Their ads are parsed here, outside of the loop.
func (l *loop) watch(ctx context.Context, node *config.Node, id *rpc.Identity) {
	w := advertise.Watcher{
		Collectors: node.Collectors, Identity: id, Type: "Machine", Log: l.log,
		Apply: func(changes []advertise.Change, synced bool) {
			all := make([]machineNews, 0, len(changes))
			for _, c := range changes {
				all = append(all, readMachine(c, l.log))
			}
			l.post(ctx, func(time.Time) { l.cell.machinesChanged(all, synced) })
		},
	}
	w.Run(ctx)
}

// advertise lets the pool know where the negotiator is.
func (l *loop) advertise(ctx context.Context, node *config.Node, id *rpc.Identity) {
	client := advertise.New(advertise.Config{Collectors: node.Collectors, Identity: id, Type: "Negotiator", Name: node.Name, Log: l.log})
	ad := classad.New()
	ad.SetString(roost.AttrMyType, "Negotiator")
	ad.SetString(roost.AttrName, node.Name)
	ad.SetString(roost.AttrMyAddress, node.Negotiator.Listen[0])
	ad.SetInt("Epoch", int64(l.cell.epoch))
	ad.SetInt(roost.AttrDaemonStart, client.Started()/int64(time.Second))
	client.Update(ad.String(), nil)
	client.Run(ctx)
}
