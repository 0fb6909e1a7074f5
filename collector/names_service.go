package collector

import (
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/collector/names"
	"github.com/roost-batch/roost/internal/wire"
)

const (
	// endpoints in one message: some hundred bytes each
	maxSentEndpoints = 1000
	// changes within this time are sent together
	namesInterval = 20 * time.Millisecond
)

// Names sends the endpoints of services, then changes if the caller watches. A slow
// caller gets a full list again instead of changes without bound.
func (s *grpcService) Names(q *wire.NamesQuery, stream grpc.ServerStreamingServer[wire.NamesUpdate]) error {
	table := s.storeLoop.names
	w, wake := table.startWatch(names.Selection{Owner: strings.ToLower(q.GetOwner()),
		Name: strings.ToLower(q.GetName()), Job: q.GetJob()})
	defer table.endWatch(w)
	pause := time.NewTimer(time.Hour)
	defer pause.Stop()
	for {
		if err := s.sendNames(table.take(w), stream); err != nil || !q.GetWatch() {
			return err
		}
		select {
		case <-wake:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
		pause.Reset(namesInterval)
		select {
		case <-pause.C:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

// sendNames sends an update in parts.
func (s *grpcService) sendNames(u names.Update, stream grpc.ServerStreamingServer[wire.NamesUpdate]) error {
	for first := true; ; first = false {
		n, k := min(len(u.Endpoints), maxSentEndpoints), min(len(u.Removed), maxSentEndpoints)
		m := &wire.NamesUpdate{Version: u.Version, Full: u.Full && first}
		for _, e := range u.Endpoints[:n] {
			m.Endpoints = append(m.Endpoints, s.endpointMessage(e))
		}
		for _, key := range u.Removed[:k] {
			m.Removed = append(m.Removed, keyMessage(key))
		}
		u.Endpoints, u.Removed = u.Endpoints[n:], u.Removed[k:]
		m.More = len(u.Endpoints)+len(u.Removed) > 0
		if err := stream.Send(m); err != nil || !m.More {
			return err
		}
	}
}

func keyMessage(k names.TaskKey) *wire.EndpointKey {
	return &wire.EndpointKey{Owner: k.Owner, Name: k.Name, Job: k.Job, Index: k.Index}
}

func (s *grpcService) endpointMessage(e *names.Endpoint) *wire.ServiceEndpoint {
	m := &wire.ServiceEndpoint{Key: keyMessage(e.TaskKey), Attempt: e.Attempt, Revision: e.Revision,
		State: e.State.String(), Weight: uint32(e.Weight), Address: e.Address.String(), Machine: e.Node,
		DnsName: strings.TrimSuffix(s.storeLoop.names.zone.TaskName(e.TaskKey), ".")}
	for _, p := range e.Ports {
		m.Ports = append(m.Ports, &wire.EndpointPort{Name: p.Name, Number: uint32(p.Number)})
	}
	return m
}
