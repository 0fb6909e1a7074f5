package replica

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// streamLayer makes net.Conns for raft from gRPC streams. Raft has one end of a pipe in
// memory, whose deadlines work, and a goroutine copies bytes between the other end and
// the stream.
type streamLayer struct {
	replica  *Replica
	incoming chan net.Conn
	closed   chan struct{}
	once     sync.Once
	running  sync.WaitGroup
}

// memberAddress is the address of a replica, as a net.Addr.
type memberAddress string

func (memberAddress) Network() string  { return "roost" }
func (a memberAddress) String() string { return string(a) }

func (l *streamLayer) Addr() net.Addr { return memberAddress(l.replica.config.Address) }

func (l *streamLayer) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Accept waits for a stream that another replica has opened.
func (l *streamLayer) Accept() (net.Conn, error) {
	select {
	case conn := <-l.incoming:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// offerConn passes a connection to raft.
func (l *streamLayer) offerConn(ctx context.Context, conn net.Conn) error {
	select {
	case l.incoming <- conn:
		return nil
	case <-l.closed:
	case <-ctx.Done():
	}
	return fmt.Errorf("replica %s: %w: it is stopping", l.replica.config.Name, roost.Unavailable)
}

// Dial opens a stream to the replica at an address of raft's configuration.
func (l *streamLayer) Dial(target raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithCancel(context.Background())
	near, far := net.Pipe()
	if string(target) == l.replica.config.Address {
		defer cancel()
		l.running.Go(func() {
			<-l.closed
			near.Close()
		})
		return near, l.offerConn(ctx, far)
	}
	late := time.AfterFunc(timeout, cancel)
	conn, stream, err := l.replica.openStream(ctx, string(target))
	if err == nil && !late.Stop() {
		err = errors.Join(fmt.Errorf("replica at %s: %w: no answer within %v", target, roost.Unavailable, timeout),
			conn.Close())
	}
	if err != nil {
		cancel()
		return nil, err
	}
	l.running.Go(func() {
		defer conn.Close()
		defer cancel()
		l.copyStream(far, stream, cancel)
	})
	return near, nil
}

// openStream makes a connection and a stream on it, and waits until the other end has
// accepted it.
func (r *Replica) openStream(ctx context.Context, target string) (*grpc.ClientConn, streamConn, error) {
	to := r.memberByID(func(s raft.Server) bool { return string(s.Address) == target })
	if to.ID == "" {
		return nil, nil, fmt.Errorf("replica at %s: %w: it is not a member of the cell", target, roost.NotFound)
	}
	conn, err := r.dial(target)
	if err != nil {
		return nil, nil, err
	}
	s, err := wire.NewReplicaClient(conn).Traffic(ctx)
	if err == nil {
		self := r.identity.Load()
		err = s.Send(&wire.ReplicaBytes{From: self.ID, To: string(to.ID), Cell: self.Cell})
	}
	if err == nil || errors.Is(err, io.EOF) { // the other end has already ended it: Recv returns the reason
		_, err = s.Recv()
	}
	if err != nil {
		return nil, nil, errors.Join(rpc.FromStatus(err), conn.Close())
	}
	return conn, s, nil
}

// streamConn is either end of a stream.
type streamConn interface {
	Send(*wire.ReplicaBytes) error
	Recv() (*wire.ReplicaBytes, error)
}

// copyStream copies bytes between the pipe and the stream until one of the ends is
// closed. stop makes a blocked Recv return.
func (l *streamLayer) copyStream(far net.Conn, s streamConn, stop func()) {
	rpc.CopyByteStream(far, byteStream{s}, l.closed, stop, l.running.Go)
}

// byteStream is a stream as package rpc copies it.
type byteStream struct{ streamConn }

func (b byteStream) SendBytes(data []byte) error { return b.Send(&wire.ReplicaBytes{Data: data}) }

func (b byteStream) ReceiveBytes() ([]byte, error) {
	m, err := b.Recv()
	return m.GetData(), err
}
