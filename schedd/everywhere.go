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

// QueryPool lists the jobs of several schedds, the newest first. All are asked at once, and their answers merged as they come, so that nobody holds
// more than a few rows of any of them. The user waits for this schedd as long as it takes, and for all others together for as long as patience has it.
func (s *service) QueryPool(req *wire.PoolQuery, stream grpc.ServerStreamingServer[wire.PoolRow]) error {
	who, err := s.caller(stream.Context())
	if err != nil {
		return err
	}
	parts, refused, err := s.split(req)
	if err != nil {
		return err
	}
	for _, r := range refused {
		if err := stream.Send(&wire.PoolRow{Of: &wire.PoolRow_Status{Status: &wire.JobStatus{Refused: r}}}); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(stream.Context())
	defer cancel()
	var sources []*source
	for _, p := range parts {
		src := &source{part: p, rows: make(chan line, rowsAhead), patience: neighbourPatience}
		sources = append(sources, src)
		go func() {
			defer close(src.rows)
			send := func(row line) error { return src.put(ctx, row) }
			if p.node == s.node.Name {
				src.err = s.list(ctx, p.query, who, send)
			} else {
				src.err = s.listThere(ctx, p.node, &wire.NeighbourQuery{Query: p.query, User: who.User}, func(row *wire.JobStatus) error {
					return send(line{at: cmp.Or(row.GetOrderTime(), row.GetSubmitted()), status: row})
				})
			}
		}()
	}
	m := &merging{own: s.node.Name, sources: sources, left: int(req.GetQuery().GetLimit()), table: req.GetQuery().GetTable(), send: stream.Send, mute: func(node string) { s.neighbours.mute(node, nil) }}
	err = m.run(ctx)
	cancel()
	for _, src := range sources {
		for range src.rows { // until its sender has gone
		}
	}
	return err
}

// part is what one schedd is asked.
type part struct {
	node  string
	query *wire.QueryRequest
	named bool // a word of the user's names this schedd
}

// split gives each selector to the schedd that it is for. This one comes first. Of a table, those of schedds that there are not are refused.
func (s *Schedd) split(req *wire.PoolQuery) (parts []part, refused []*wire.Refused, err error) {
	query, own := req.GetQuery(), s.node.Name
	if at := req.GetAt(); at != "" {
		if at != own && !s.neighbours.knows(at) {
			return nil, nil, s.noSchedd(at)
		}
		return []part{{at, query, true}}, nil, nil
	}
	words := query.GetSelection().GetSelectors()
	everybody := slices.Sorted(slices.Values(s.neighbours.names()))
	if len(words) == 0 {
		parts = []part{{own, query, false}}
		for _, name := range everybody {
			parts = append(parts, part{name, query, false})
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
		host, there := s.elsewhere(word)
		if !there {
			host = own
		} else if named[host] = true; !s.neighbours.knows(host) {
			err := fmt.Errorf("%s: %w", word, s.noSchedd(host))
			if !query.GetTable() {
				return nil, nil, err
			}
			refused = append(refused, refusedWord(word, err))
			continue
		}
		of[host] = append(of[host], word)
	}
	for _, name := range append([]string{own}, everybody...) {
		if len(of[name]) > 0 {
			one := proto.CloneOf(query)
			one.Selection.Selectors = of[name]
			parts = append(parts, part{name, one, named[name] || name == own})
		}
	}
	return parts, refused, nil
}

func (s *Schedd) noSchedd(name string) error {
	return fmt.Errorf("%w: no schedd %s is known in this pool; it has %s", roost.NotFound, name, strings.Join(append([]string{s.node.Name}, s.neighbours.names()...), ", "))
}

// elsewhere finds the schedd that a job's id names, if it is another one.
func (s *Schedd) elsewhere(word string) (host string, there bool) {
	if word == "" || word[0] < '0' || word[0] > '9' {
		return "", false
	}
	_, host, dotted := strings.Cut(word, ".")
	return host, dotted && host != "" && host != s.node.Name
}
