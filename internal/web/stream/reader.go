package stream

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/session"
	"github.com/roost-batch/roost/internal/wire"
)

// Times of the reader.
const (
	jobInterval   = time.Second           // between events of one job
	changePause   = 50 * time.Millisecond // a page that opens wants several topics, one after the other
	retryInterval = time.Second           // after an error
	remotePoll    = 2 * time.Second       // of jobs of other schedds, which Watch does not follow
)

// jobTopic is the topic of a job: "job/12.n2".
const jobTopic = "job/"

// jobEvent is the data of an event of a job.
type jobEvent struct {
	Topic string       `json:"topic"`
	Job   document.Job `json:"job"`
}

// run reads for the streams of a hub until ctx ends. It starts again when they want other
// topics, or its session is over.
func (u *hub) run(ctx context.Context) {
	for {
		topics, s := u.wanted()
		reading, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if s != nil && len(topics) > 0 {
				u.read(reading, s, topics)
			}
		}()
		select {
		case <-u.changed:
		case <-ctx.Done():
		}
		cancel()
		<-done
		select {
		case <-time.After(changePause):
		case <-ctx.Done():
			return
		}
		select {
		case <-u.changed: // what came meanwhile is in the next turn
		default:
		}
	}
}

// read follows topics with one session until ctx ends or the session is over.
func (u *hub) read(ctx context.Context, s *session.Session, topics []string) {
	for ctx.Err() == nil {
		err := u.follow(ctx, s, topics)
		if ctx.Err() != nil {
			return
		}
		select {
		case <-s.Ended():
			u.signalChange()
			return
		default:
		}
		if err != nil {
			u.hubs.log.Debug("a stream is interrupted", "user", u.user, "error", err)
		}
		select {
		case <-time.After(retryInterval):
		case <-ctx.Done():
		}
	}
}

// follow publishes the present state of jobs, and then their changes.
func (u *hub) follow(ctx context.Context, s *session.Session, topics []string) error {
	schedd, err := s.Schedd()
	if err != nil {
		return err
	}
	var ids []string
	for _, t := range topics {
		if id, ok := strings.CutPrefix(t, jobTopic); ok {
			ids = append(ids, id)
		}
	}
	local, remote, err := u.publishPresent(ctx, schedd, s.Node, ids)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	failed := make(chan error, 2)
	go func() { failed <- u.watch(ctx, schedd, local) }()
	go func() { failed <- u.poll(ctx, schedd, s.Node, remote) }()
	err = <-failed
	cancel()
	<-failed
	return err
}

// publishPresent publishes the present state of jobs. It returns those that may still
// change: of the session's schedd, and of others.
func (u *hub) publishPresent(ctx context.Context, schedd wire.ScheddClient, node string,
	ids []string) (local, remote []string, err error) {
	if len(ids) == 0 {
		return nil, nil, nil
	}
	stream, err := schedd.QueryPool(ctx, &wire.PoolQuery{Query: &wire.QueryRequest{Table: true, History: true,
		Selection: &wire.Selection{Selectors: ids}}})
	for err == nil {
		var row *wire.PoolRow
		if row, err = stream.Recv(); err != nil {
			break
		}
		texts := row.GetBatch().GetJobs()
		all := []*wire.JobStatus{}
		if row.GetStatus() != nil {
			all = append(all, row.GetStatus())
		}
		for _, text := range texts {
			status := &wire.JobStatus{}
			if err = proto.Unmarshal(text, status); err != nil {
				return nil, nil, err
			}
			all = append(all, status)
		}
		for _, status := range all {
			if status.GetRefused() != nil {
				continue // there is no such job: its page says so
			}
			u.publishJob(status)
			switch _, host, _ := strings.Cut(status.GetId(), "."); {
			case document.IsFinal(status):
			case host == node:
				local = append(local, status.GetId())
			default:
				remote = append(remote, status.GetId())
			}
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return local, remote, err
}

func (u *hub) publishJob(status *wire.JobStatus) {
	topic := jobTopic + status.GetId()
	data, err := json.Marshal(jobEvent{topic, document.JobOf(status, false)})
	if err == nil {
		u.publish(topic, "job", data)
	}
}

// watch follows jobs of the session's schedd until all have ended, and then waits for
// ctx.
func (u *hub) watch(ctx context.Context, schedd wire.ScheddClient, ids []string) error {
	if len(ids) == 0 {
		<-ctx.Done()
		return nil
	}
	stream, err := schedd.Watch(ctx, &wire.WatchRequest{Selection: &wire.Selection{Selectors: ids},
		IntervalMs: uint32(jobInterval / time.Millisecond)})
	for err == nil {
		var e *wire.WatchEvent
		if e, err = stream.Recv(); err == nil {
			u.publishJob(e.GetStatus())
		}
	}
	if errors.Is(err, io.EOF) {
		<-ctx.Done()
		return nil
	}
	return err
}

// poll follows jobs of other schedds.
func (u *hub) poll(ctx context.Context, schedd wire.ScheddClient, node string, ids []string) error {
	for len(ids) > 0 {
		select {
		case <-time.After(remotePoll):
		case <-ctx.Done():
			return nil
		}
		_, left, err := u.publishPresent(ctx, schedd, node, ids)
		if err != nil {
			return err
		}
		ids = left
	}
	<-ctx.Done()
	return nil
}
