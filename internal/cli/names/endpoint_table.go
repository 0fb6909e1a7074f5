package names

import (
	"cmp"
	"context"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/account"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// endpointKey is the key of a task of a service.
type endpointKey struct {
	owner, name, job string
	index            uint32
}

func keyOf(k *scheddapi.EndpointKey) endpointKey {
	return endpointKey{k.GetOwner(), k.GetName(), k.GetJob(), k.GetIndex()}
}

// endpointTable is the endpoints of a watch.
type endpointTable map[endpointKey]*scheddapi.ServiceEndpoint

// apply applies a part of an update.
func (t endpointTable) apply(u *scheddapi.NamesUpdate) {
	if u.GetFull() {
		clear(t)
	}
	for _, e := range u.GetEndpoints() {
		t[keyOf(e.GetKey())] = e
	}
	for _, k := range u.GetRemoved() {
		delete(t, keyOf(k))
	}
}

// list returns the endpoints in order.
func (t endpointTable) list() []*scheddapi.ServiceEndpoint {
	all := make([]*scheddapi.ServiceEndpoint, 0, len(t))
	for _, e := range t {
		all = append(all, e)
	}
	slices.SortFunc(all, func(x, y *scheddapi.ServiceEndpoint) int {
		a, b := keyOf(x.GetKey()), keyOf(y.GetKey())
		return cmp.Or(cmp.Compare(a.owner, b.owner), cmp.Compare(a.name, b.name), cmp.Compare(a.job, b.job),
			cmp.Compare(a.index, b.index))
	})
	return all
}

// parseJob parses how users name a service: "123.POOL", "hub", or "hub.ann" for that of
// another user.
func parseJob(text string) (*scheddapi.NamesQuery, error) {
	first, rest, more := strings.Cut(text, ".")
	if _, err := strconv.ParseUint(first, 10, 63); err == nil {
		if !more {
			return nil, frame.KindErrorf(roost.Invalid, "%s is no name of a service and no whole id of a job; "+
				"write hub, hub.ann or 123.POOL", text)
		}
		return &scheddapi.NamesQuery{Job: text}, nil
	}
	q := &scheddapi.NamesQuery{Name: first, Owner: rest}
	if !more {
		user, err := account.CurrentUser()
		if err != nil {
			return nil, err
		}
		q.Owner = user.Username
	}
	return q, nil
}

// followNames calls changed with the first list of endpoints. If the query watches, it
// calls it with each later one, until changed returns an error.
func followNames(c *frame.Invocation, q *scheddapi.NamesQuery,
	changed func(endpointTable, *scheddapi.NamesUpdate) error) error {
	s, err := c.ConnectSchedd()
	if err != nil {
		return err
	}
	patience := frame.AskTimeout
	if q.GetWatch() {
		patience = maxPatience
	}
	table := endpointTable{}
	return c.Retry(patience, func(ctx context.Context, alive func()) error {
		stream, err := s.Names(ctx, q)
		if err != nil {
			return err
		}
		return readNames(stream, table, alive, changed)
	})
}

func readNames(stream scheddapi.Receiver[scheddapi.NamesUpdate], table endpointTable, alive func(),
	changed func(endpointTable, *scheddapi.NamesUpdate) error) error {
	whole := &scheddapi.NamesUpdate{}
	for {
		u, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		alive()
		table.apply(u)
		whole.Full = whole.Full || u.GetFull()
		whole.Endpoints = append(whole.Endpoints, u.GetEndpoints()...)
		whole.Removed = append(whole.Removed, u.GetRemoved()...)
		if whole.Version = u.GetVersion(); u.GetMore() {
			continue
		}
		if err := changed(table, whole); err != nil {
			return err
		}
		whole = &scheddapi.NamesUpdate{}
	}
}
