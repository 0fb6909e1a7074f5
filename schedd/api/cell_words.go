package api

import (
	"context"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// A user has jobs in two queues: that of the own host, and that of the cell. The words
// "last", "@name" and "all" mean those of both.

// maxNamedInCell bounds the jobs of one name in the queue of the cell.
const maxNamedInCell = 10_000

// isWordOfSeveral reports whether a word means jobs of the user in both queues.
func isWordOfSeveral(word string) bool { return word == "all" || strings.HasPrefix(word, "@") }

// userCellQueue returns the name of the queue of the cell if the user can have jobs
// there.
func userCellQueue(s *Service, who queue.CallerIdentity) string {
	cell := s.node.CellQueueName()
	if cell == "" || cell == s.node.Name || who.User == "" || !s.peerSchedds.HasPeer(cell) {
		return ""
	}
	return cell
}

// resolveLast replaces the word "last" where the user's newest job from this host is in
// the queue of the cell. Other words stay, and so does "last" where that job is in the
// queue of this host.
func resolveLast(ctx context.Context, s *Service, who queue.CallerIdentity, words []string) ([]string, error) {
	var resolved []string
	for i, word := range words {
		if word != "last" && !strings.HasPrefix(word, "last[") {
			continue
		}
		id, err := lastInCell(ctx, s, who)
		if err != nil {
			return nil, err
		}
		if id == "" {
			return words, nil
		}
		if resolved == nil {
			resolved = append(resolved, words...)
		}
		number, host, _ := strings.Cut(id, ".")
		resolved[i] = number + word[len("last"):] + "." + host
	}
	if resolved == nil {
		return words, nil
	}
	return resolved, nil
}

// resolveJobWords replaces "last" and "@name" by the ids of jobs in the queue of the
// cell. A name that jobs of this host have too stays beside them. With history, jobs that
// have ended are meant too.
func resolveJobWords(ctx context.Context, s *Service, who queue.CallerIdentity, words []string,
	history bool) (resolved []string, err error) {
	if words, err = resolveLast(ctx, s, who, words); err != nil {
		return nil, err
	}
	for _, word := range words {
		ids, err := namedInCell(ctx, s, who, word, history)
		if err != nil {
			return nil, err
		}
		isHere := len(ids) == 0
		if !isHere {
			if isHere, err = isNamedHere(ctx, s, who, word[1:], history); err != nil {
				return nil, err
			}
		}
		if isHere {
			resolved = append(resolved, word)
		}
		resolved = append(resolved, ids...)
	}
	return resolved, nil
}

// resolveJobWord is resolveJobWords for a word that is to mean a single job.
func resolveJobWord(ctx context.Context, s *Service, who queue.CallerIdentity, word string) (string, error) {
	words, err := resolveJobWords(ctx, s, who, []string{word}, false)
	if err != nil {
		return "", err
	}
	if len(words) != 1 {
		return "", fmt.Errorf("%s: %w: it names several jobs: %s", word, roost.Invalid, strings.Join(words, ", "))
	}
	return words[0], nil
}

// namedInCell returns the ids of the jobs in the queue of the cell that "@name" means.
func namedInCell(ctx context.Context, s *Service, who queue.CallerIdentity, word string,
	history bool) (ids []string, err error) {
	cell := userCellQueue(s, who)
	if cell == "" || !strings.HasPrefix(word, "@") {
		return nil, nil
	}
	rows, err := s.peerSchedds.JobsOfPeer(ctx, cell, who, &wire.QueryRequest{History: history,
		Limit: maxNamedInCell + 1, Selection: &wire.Selection{Selectors: []string{word}, Mine: true}})
	if rpc.KindOf(err) == roost.Unavailable {
		if here, herr := isNamedHere(ctx, s, who, word[1:], false); herr == nil && here {
			return nil, nil // what is here can be said
		}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w; jobs of that name may be in the queue of the cell: name them by their ids",
			word, err)
	case len(rows) > maxNamedInCell:
		return nil, fmt.Errorf("%s: %w: more than %d jobs in the queue of the cell have that name: name them by "+
			"their ids", word, roost.Exhausted, maxNamedInCell)
	}
	for _, row := range rows {
		ids = append(ids, row.GetId())
	}
	return ids, nil
}

// isNamedHere reports whether a user has a job of that name in the queue of this host.
// With history, jobs that have ended count too.
func isNamedHere(ctx context.Context, s *Service, who queue.CallerIdentity, name string,
	history bool) (is bool, err error) {
	filter := queue.JobFilter{Owner: who.User, Name: name}
	err = s.loop.CallLoop(ctx, func(time.Time) { is = len(s.queue.MatchingJobs(filter)) > 0 })
	if err != nil || is || !history {
		return is, err
	}
	err = s.history.Each(func(seq uint64, past *queue.Queue) bool {
		st, _ := past.Status(seq)
		is = st.Owner == who.User && st.Name == name
		return !is
	})
	return is, err
}

// splitWords parts words by where their jobs are: here, or in the queue of the cell.
func splitWords(s *Service, words []string) (here, there []string) {
	cell := s.node.CellQueueName()
	for _, word := range words {
		if host, isRemote := s.peerSchedds.RemoteHost(word); isRemote && host == cell {
			there = append(there, word)
		} else {
			here = append(here, word)
		}
	}
	return here, there
}

// listInBothQueues lists jobs of this host and of the queue of the cell.
func listInBothQueues(ctx context.Context, s *Service, req *wire.QueryRequest, who queue.CallerIdentity, here,
	there []string, send func(*wire.JobStatus) error) error {
	left := int(req.GetLimit())
	sendBounded := func(row *wire.JobStatus) error {
		if req.GetLimit() > 0 {
			if left == 0 {
				return nil
			}
			left--
		}
		return send(row)
	}
	part := proto.CloneOf(req)
	if part.Selection.Selectors = here; len(here) > 0 {
		if err := s.ListJobs(ctx, part, who, sendBounded); err != nil {
			return err
		}
	}
	part.Selection.Selectors = there
	return s.peerSchedds.QueryPeerWithin(ctx, s.node.CellQueueName(), &wire.NeighbourQuery{User: who.User, Uid: who.UID,
		Query: part}, sendBounded)
}

// sharedWord returns the word of an act that means jobs in both queues. It is "" if the
// words mean jobs of one.
func sharedWord(s *Service, who queue.CallerIdentity, node string, req *wire.ActRequest) string {
	words := req.GetSelection().GetSelectors()
	if node != "" || len(words) != 1 || !isWordOfSeveral(words[0]) || userCellQueue(s, who) == "" {
		return ""
	}
	return words[0]
}

// actInBothQueues acts on the jobs that a word means, of this host and of the queue of
// the cell. That a queue has none of them is an answer only if neither has.
func actInBothQueues(ctx context.Context, s *Service, word string, req *wire.ActRequest,
	who queue.CallerIdentity) (*wire.ActReply, error) {
	here, err := s.ActOnJobs(ctx, proto.CloneOf(req), who)
	if err != nil {
		return nil, err
	}
	there := s.peerSchedds.ActOnPeer(ctx, userCellQueue(s, who), req, who)
	switch {
	case namesNothing(there, word):
		return here, nil
	case namesNothing(here, word):
		return there, nil
	}
	here.Results = append(here.Results, there.GetResults()...)
	return here, nil
}

// namesNothing reports whether a word means no job in a queue.
func namesNothing(reply *wire.ActReply, word string) bool {
	results := reply.GetResults()
	return len(results) == 0 || len(results) == 1 && results[0].GetId() == word &&
		roost.ErrorKind(results[0].GetKind()) == roost.NotFound && results[0].GetError() != ""
}
