package schedd

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// QueryPool lists the jobs of several schedds, the newest first. All are asked at once,
// and their answers merged as they come, so that nobody holds more than a few rows of any
// of them. The user waits for this schedd as long as it takes, and for all others
// together for as long as patience has it.
func (s *userService) QueryPool(req *wire.PoolQuery, stream grpc.ServerStreamingServer[wire.PoolRow]) error {
	who, err := s.callerOf(stream.Context())
	if err != nil {
		return err
	}
	parts, refused, err := s.splitBySchedd(req)
	if err != nil {
		return err
	}
	for _, r := range refused {
		if err := stream.Send(&wire.PoolRow{Of: &wire.PoolRow_Status{Status: &wire.JobStatus{Refused: r}}}); err !=
			nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	var sources []*rowSource
	for _, p := range parts {
		src := &rowSource{peerQuery: p, rows: make(chan tableRow, rowBuffer), remainingWait: peerTimeout}
		sources = append(sources, src)
		go func() {
			defer close(src.rows)
			send := func(row tableRow) error { return src.addRow(ctx, row) }
			if p.node == s.node.Name {
				src.err = s.runListQuery(ctx, p.query, who, send)
			} else {
				src.err = s.queryPeer(ctx, p.node, &wire.NeighbourQuery{Query: p.query, User: who.User},
					func(row *wire.JobStatus) error {
						return send(tableRow{submittedAt: cmp.Or(row.GetOrderTime(), row.GetSubmitted()), status: row})
					})
			}
		}()
	}
	m := &rowMerger{local: s.node.Name, sources: sources, limit: int(req.GetQuery().GetLimit()),
		asTable: req.GetQuery().GetTable(), send: stream.Send, onTimeout: func(node string) {
			s.peerSchedds.markUnreachable(node, nil)
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
func (s *Schedd) splitBySchedd(req *wire.PoolQuery) (parts []peerQuery, refused []*wire.Refused, err error) {
	query, own := req.GetQuery(), s.node.Name
	if at := req.GetAt(); at != "" {
		if at != own && !s.peerSchedds.hasPeer(at) {
			return nil, nil, s.unknownScheddError(at)
		}
		return []peerQuery{{at, query, true}}, nil, nil
	}
	words := query.GetSelection().GetSelectors()
	everybody := slices.Sorted(slices.Values(s.peerSchedds.peerNames()))
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
		host, there := s.remoteHost(word)
		if !there {
			host = own
		} else if named[host] = true; !s.peerSchedds.hasPeer(host) {
			err := fmt.Errorf("%s: %w", word, s.unknownScheddError(host))
			if !query.GetTable() {
				return nil, nil, err
			}
			refused = append(refused, selectionError(word, err))
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

func (s *Schedd) unknownScheddError(name string) error {
	return fmt.Errorf("%w: no schedd %s is known in this pool; it has %s", roost.NotFound, name,
		strings.Join(append([]string{s.node.Name}, s.peerSchedds.peerNames()...), ", "))
}

// remoteHost finds the schedd that a job's id names, if it is another one.
func (s *Schedd) remoteHost(word string) (host string, there bool) {
	if word == "" || word[0] < '0' || word[0] > '9' {
		return "", false
	}
	_, host, dotted := strings.Cut(word, ".")
	return host, dotted && host != "" && host != s.node.Name
}
