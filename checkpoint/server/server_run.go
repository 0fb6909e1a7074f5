package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/checkpoint/packages"
	"github.com/roost-batch/roost/checkpoint/store"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/metrics"
	"github.com/roost-batch/roost/internal/rpc"
	blobstore "github.com/roost-batch/roost/internal/store"
	"github.com/roost-batch/roost/internal/wire"
)

// An image that was neither put nor got during the retention is deleted, because the
// schedd that should remove it no longer exists. sweepInterval is how often such images
// are searched.
const (
	retention     = 90 * 24 * time.Hour
	sweepInterval = time.Hour
)

// Run serves as the checkpoint server of node until ctx ends. With a nil identity it
// serves unix sockets only.
func Run(ctx context.Context, node *config.Node, id *rpc.Identity) error {
	log := daemon.Logger("checkpoint-server")
	own := node.Images
	if own == nil || len(own.Listen) == 0 {
		return fmt.Errorf("checkpoint server of %s: %w: it has no address to listen on", node.Name, roost.BadConfig)
	}
	listeners, err := listen(own.Listen)
	if err != nil {
		return fmt.Errorf("checkpoint server: %w", err)
	}
	service, exporter, err := open(node, id, log)
	if err != nil {
		for _, l := range listeners {
			l.Close()
		}
		return fmt.Errorf("checkpoint server: %w", err)
	}
	defer service.blobs.Close()
	log.Info("serving", "addresses", own.Listen, "dir", own.Dir)
	return serveListeners(ctx, service, exporter, rpc.NewServer(id, peer.MethodAccess(), grpc.WaitForHandlers(true)),
		listeners, log)
}

func listen(addresses []string) (all []net.Listener, err error) {
	for _, addr := range addresses {
		l, err := rpc.Listen(addr, 0o600)
		if err != nil {
			for _, l := range all {
				l.Close()
			}
			return nil, err
		}
		all = append(all, l)
	}
	return all, nil
}

// open opens the files of the server of a node, and the address of its metrics.
func open(node *config.Node, id *rpc.Identity, log *slog.Logger) (_ *Service, _ *metrics.Exporter, err error) {
	own := node.Images
	images, err := store.Open(own.Dir, int64(own.Max))
	if err != nil {
		return nil, nil, err
	}
	if own.MaxFilesOfUser > 0 {
		images.MaxBytesOfUser = int64(own.MaxFilesOfUser)
	}
	if _, err = images.Sweep(func(store.ImageKey) bool { return true }); err != nil { // unfinished uploads
		return nil, nil, err
	}
	blobs, err := blobstore.OpenDirectory(filepath.Join(own.Dir, store.BlobsDir),
		blobstore.Options{MaxBytes: int64(own.Max), MaxBytesOfOwner: images.MaxBytesOfUser, SpareAfter: spareAfter})
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			blobs.Close()
		}
	}()
	names, err := packages.Open(filepath.Join(own.Dir, store.PackagesDir), blobs, packages.DefaultBounds())
	if err != nil {
		return nil, nil, err
	}
	exporter, err := metrics.Open(node, "checkpoint_server", "", id, log)
	if err != nil {
		return nil, nil, err
	}
	s := New(images, id)
	s.blobs, s.packages, s.maxBlobBytes = blobs, names, int64(own.Max)
	s.metrics = metrics.NewCheckpointServer(exporter.Registry(), own.Dir)
	return s, exporter, nil
}

// serveListeners serves on listeners, which it closes, until ctx ends or one of them
// fails.
func serveListeners(ctx context.Context, s *Service, exporter *metrics.Exporter, server *rpc.Server,
	listeners []net.Listener, log *slog.Logger) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wire.RegisterCheckpointServerServer(server, s)
	var running sync.WaitGroup
	running.Go(func() { s.runExpiry(ctx, log) })
	running.Go(func() { s.runMetrics(ctx) })
	running.Go(func() { exporter.Run(ctx) })
	broken := make(chan error, len(listeners))
	for _, l := range listeners {
		running.Go(func() { broken <- server.Serve(l) })
	}
	daemon.ReportReady()
	var err error
	select {
	case <-ctx.Done():
	case err = <-broken:
	}
	cancel()
	server.Stop()
	s.transfers.Wait()
	running.Wait()
	return err
}

// runExpiry deletes old images and unused blobs periodically.
func (s *Service) runExpiry(ctx context.Context, log *slog.Logger) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		n, err := s.images.Expire(time.Now().Add(-retention))
		files, ferr := s.images.ExpireUserFiles(time.Now().Add(-retention))
		n, err = n+files, errors.Join(err, ferr)
		if n > 0 || err != nil {
			log.Info("old checkpoints and files that were not used were deleted", "count", n, "err", err)
		}
		if s.blobs != nil {
			if removed, err := s.collectBlobs(s.maxBlobBytes, time.Now()); len(removed) > 0 || err != nil {
				log.Info("unused container images and packages were deleted", "count", len(removed), "err", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
