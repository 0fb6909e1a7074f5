package peers

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// LocalQuery sends the rows of a query that this schedd answers itself.
type LocalQuery func(ctx context.Context, q *wire.QueryRequest, send func(ListRow) error) error

// QueryAll lists the jobs of several schedds for a user, the newest first. All are asked
// at once, and their answers merged as they come, so that nobody holds more than a few
// rows of any of them. The user waits for this schedd as long as it takes, and for all
// others together for as long as patience has it.
func (n *Peers) QueryAll(ctx context.Context, req *wire.PoolQuery, who queue.CallerIdentity, local LocalQuery,
	send func(*wire.PoolRow) error) error {
	parts, refused, err := n.splitBySchedd(req)
	if err != nil {
		return err
	}
	setPlaces(parts, req.GetAfter())
	for _, r := range refused {
		if err := send(&wire.PoolRow{Of: &wire.PoolRow_Status{Status: &wire.JobStatus{Refused: r}}}); err !=
			nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var sources []*rowSource
	for _, p := range parts {
		src := &rowSource{peerQuery: p, rows: make(chan ListRow, rowBuffer), remainingWait: peerTimeout}
		sources = append(sources, src)
		go func() {
			defer close(src.rows)
			add := func(row ListRow) error { return src.addRow(ctx, row) }
			if p.node == n.localName {
				src.err = local(ctx, p.query, add)
			} else {
				query := n.queryPeer
				if p.isNamed {
					query = n.QueryPeerWithin
				}
				src.err = query(ctx, p.node, &wire.NeighbourQuery{Query: p.query, User: who.User, Uid: who.UID},
					func(row *wire.JobStatus) error {
						return add(ListRow{SubmittedAt: cmp.Or(row.GetOrderTime(), row.GetSubmitted()), Status: row})
					})
			}
		}()
	}
	m := &rowMerger{local: n.localName, sources: sources, limit: int(req.GetQuery().GetLimit()),
		asTable: req.GetQuery().GetTable(), send: send, onTimeout: func(node string) {
			n.markUnreachable(node, nil)
		}}
	err = m.mergeRows(ctx)
	cancel()
	for _, src := range sources {
		for range src.rows { // until its sender has gone
		}
	}
	return err
}

// peerQuery is what one schedd is asked.
type peerQuery struct {
	node    string
	query   *wire.QueryRequest
	isNamed bool // a word of the user's names this schedd
}

// splitBySchedd gives each selector to the schedd that it is for. This one comes first.
// Of a table, those of schedds that there are not are refused.
func (n *Peers) splitBySchedd(req *wire.PoolQuery) (parts []peerQuery, refused []*wire.Refused, err error) {
	query, own := req.GetQuery(), n.localName
	if at := req.GetAt(); at != "" {
		if at != own && !n.HasPeer(at) {
			return nil, nil, n.unknownScheddError(at)
		}
		return []peerQuery{{at, query, true}}, nil, nil
	}
	words := query.GetSelection().GetSelectors()
	everybody := slices.Sorted(slices.Values(n.peerNames()))
	if len(words) == 0 {
		parts = []peerQuery{{own, query, false}}
		for _, name := range everybody {
			parts = append(parts, peerQuery{name, query, false})
		}
		return parts, nil, nil
	}
	of, named := map[string][]string{}, map[string]bool{}
	for _, word := range words {
		if word == "all" {
			for _, name := range everybody {
				of[name] = append(of[name], word)
			}
		}
		host, there := n.RemoteHost(word)
		if !there {
			host = own
		} else if named[host] = true; !n.HasPeer(host) {
			err := fmt.Errorf("%s: %w", word, n.unknownScheddError(host))
			if !query.GetTable() {
				return nil, nil, err
			}
			refused = append(refused, SelectionError(word, err))
			continue
		}
		of[host] = append(of[host], word)
	}
	for _, name := range append([]string{own}, everybody...) {
		if len(of[name]) > 0 {
			one := proto.CloneOf(query)
			one.Selection.Selectors = of[name]
			parts = append(parts, peerQuery{name, one, named[name] || name == own})
		}
	}
	return parts, refused, nil
}

// setPlaces has each schedd go on behind the row that it sent last.
func setPlaces(parts []peerQuery, after []*wire.RowPlace) {
	for _, a := range after {
		for i := range parts {
			if parts[i].node == a.GetNode() {
				parts[i].query = proto.CloneOf(parts[i].query)
				parts[i].query.Before = a.GetPlace()
			}
		}
	}
}

func (n *Peers) unknownScheddError(name string) error {
	return fmt.Errorf("%w: no schedd %s is known in this pool; it has %s", roost.NotFound, name,
		strings.Join(append([]string{n.localName}, n.peerNames()...), ", "))
}

// RemoteHost finds the schedd that a job'n id names, if it is another one.
func (n *Peers) RemoteHost(word string) (host string, there bool) {
	if word == "" || word[0] < '0' || word[0] > '9' {
		return "", false
	}
	_, host, dotted := strings.Cut(word, ".")
	return host, dotted && host != "" && host != n.localName
}
