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
	"github.com/roost-batch/roost/internal/store/bucket"
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
	service.awaitIndex(ctx, log)
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
	options, err := blobOptions(own)
	if err != nil {
		return nil, nil, err
	}
	options.MaxBytesOfOwner = images.MaxBytesOfUser
	blobs, err := blobstore.OpenDirectory(filepath.Join(own.Dir, store.BlobsDir), options)
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
	s.blobs, s.packages, s.maxBlobBytes = blobs, names, options.MaxBytes
	s.metrics = metrics.NewCheckpointServer(exporter.Registry(), own.Dir)
	return s, exporter, nil
}

// blobOptions returns the bounds of the blobs, and the object store if there is one.
func blobOptions(own *config.CheckpointServerSettings) (blobstore.Options, error) {
	options := blobstore.Options{MaxBytes: int64(own.Max), SpareAfter: spareAfter}
	o := own.Objects
	if o == nil {
		return options, nil
	}
	objects, err := bucket.Open(bucket.Options{Endpoint: o.Endpoint, Bucket: o.Bucket, Prefix: o.Prefix,
		Region: o.Region, CredentialsFile: o.CredentialsFile})
	if err != nil {
		return options, err
	}
	options.Objects, options.MaxBytes, options.MaxLocalBytes = objects, int64(o.Max), int64(o.CacheSize)
	return options, nil
}

// awaitIndex waits a while for the list of the object store. After the loss of the
// directory nobody should hear that an image does not exist.
func (s *Service) awaitIndex(ctx context.Context, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, indexTimeout)
	defer cancel()
	if err := s.blobs.AdoptObjects(ctx); err != nil {
		log.Warn("serving without what only the object store has", "err", err)
	}
}

// indexTimeout is how long the start waits for the list of an object store.
const indexTimeout = 15 * time.Second

// runObjects moves blobs to the object store until ctx ends.
func (s *Service) runObjects(ctx context.Context, log *slog.Logger) {
	if s.blobs == nil {
		return
	}
	s.blobs.RunObjects(ctx, func(err error) { log.Warn("object store", "err", err) })
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
	running.Go(func() { s.runObjects(ctx, log) })
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
