package consensus

import "time"

// Tick does what time asks for.
func (r *Replica) Tick(now time.Duration) {
	switch {
	case r.role == leader && r.peers > 1 && r.quorumTime()+Election+Heartbeat < now:
		r.follow(now, r.disk.Term, -1) // it may be cut off, and another may lead
	case now < r.due:
	case r.role == leader:
		r.tellAll(now)
	case r.disk.Learns:
		r.follow(now, r.disk.Term, -1)
	default:
		r.stand(now)
	}
}

// follow makes it a follower.
func (r *Replica) follow(now time.Duration, term uint64, who int) {
	if term > r.disk.Term {
		r.disk.Term, r.disk.Vote, r.dirty = term, -1, true
	}
	r.role, r.leader = follower, who
	r.wait(now)
}

// stand asks for votes.
func (r *Replica) stand(now time.Duration) {
	r.role, r.leader = candidate, -1
	r.disk.Term++
	r.disk.Vote, r.dirty = r.id, true
	r.votes = make([]bool, r.peers)
	r.votes[r.id] = true
	r.wait(now)
	for p := range r.peers {
		if p != r.id {
			r.send(Message{Kind: AskVote, To: p, Index: r.last(), At: r.at(r.last())})
		}
	}
	r.count(now)
}

// count makes it the leader if a majority has voted for it.
func (r *Replica) count(now time.Duration) {
	n := 0
	for _, yes := range r.votes {
		if yes {
			n++
		}
	}
	if 2*n <= r.peers {
		return
	}
	r.role, r.leader = leader, r.id
	r.next, r.match, r.heard = make([]uint64, r.peers), make([]uint64, r.peers), make([]time.Duration, r.peers)
	for p := range r.peers {
		r.next[p], r.heard[p] = r.last()+1, now
	}
	r.disk.Log = append(r.disk.Log[:r.last():r.last()], newEntry(r.disk.Term, nil))
	r.first, r.dirty = r.last(), true
	r.tellAll(now)
}

func (r *Replica) send(m Message) {
	m.From, m.Term = r.id, r.disk.Term
	r.out = append(r.out, m)
}

func (r *Replica) tellAll(now time.Duration) {
	r.due = now + Heartbeat
	for p := range r.peers {
		if p != r.id {
			r.tell(now, p)
		}
	}
}

// tell sends a peer the entries that it may not have.
func (r *Replica) tell(now time.Duration, p int) {
	before := r.next[p] - 1
	to := min(r.last(), before+mostAtOnce)
	r.send(Message{Kind: Append, To: p, Index: before, At: r.at(before), Entries: r.disk.Log[before:to:to], Commit: r.commit, Last: r.last(), Sent: now})
	r.next[p] = to + 1 // what is lost is sent again when the peer says what it lacks
}

// Step takes in a message.
func (r *Replica) Step(now time.Duration, m Message) {
	if m.Term > r.disk.Term {
		r.follow(now, m.Term, -1)
	}
	switch m.Kind {
	case AskVote:
		r.asked(now, m)
	case GiveVote:
		if m.Term == r.disk.Term && r.role == candidate && m.Yes {
			r.votes[m.From] = true
			r.count(now)
		}
	case Append:
		r.appended(now, m)
	case Appended:
		r.answered(now, m)
	}
}

func (r *Replica) asked(now time.Duration, m Message) {
	fresh := m.At > r.at(r.last()) || m.At == r.at(r.last()) && m.Index >= r.last()
	yes := m.Term == r.disk.Term && fresh && !r.disk.Learns && (r.disk.Vote == -1 || r.disk.Vote == m.From)
	if yes {
		r.disk.Vote, r.dirty = m.From, true
		r.wait(now)
	}
	r.send(Message{Kind: GiveVote, To: m.From, Yes: yes})
}

// appended takes in what a leader has sent. What stands in the log in place of its entries was never committed.
func (r *Replica) appended(now time.Duration, m Message) {
	if m.Term < r.disk.Term {
		r.send(Message{Kind: Appended, To: m.From, Sent: m.Sent})
		return
	}
	r.follow(now, m.Term, m.From)
	if m.Index > r.last() || r.at(m.Index) != m.At {
		r.send(Message{Kind: Appended, To: m.From, Index: min(m.Index-1, r.last()), Learns: r.disk.Learns, Sent: m.Sent})
		return
	}
	for i, e := range m.Entries {
		index := m.Index + uint64(i) + 1
		if index <= r.last() && r.at(index) == e.Term {
			continue
		}
		r.disk.Log = append(r.disk.Log[:index-1:index-1], m.Entries[i:]...)
		r.synced, r.dirty = min(r.synced, index-1), true
		break
	}
	same := m.Index + uint64(len(m.Entries))
	r.commit = max(r.commit, min(m.Commit, same))
	r.learnt(same, m.Last, m.Sent)
	r.send(Message{Kind: Appended, To: m.From, Index: same, Yes: true, Learns: r.disk.Learns, Sent: m.Sent})
}

func (r *Replica) answered(now time.Duration, m Message) {
	if r.role != leader || m.Term != r.disk.Term {
		return
	}
	r.heard[m.From] = max(r.heard[m.From], m.Sent)
	if m.Learns {
		r.match[m.From] = min(r.match[m.From], m.Index) // what it has acknowledged before is gone
	}
	if !m.Yes {
		r.next[m.From] = max(min(r.next[m.From], m.Index+1), r.match[m.From]+1)
		r.tell(now, m.From)
		return
	}
	r.match[m.From] = max(r.match[m.From], m.Index)
	r.next[m.From] = max(r.next[m.From], m.Index+1)
	if r.next[m.From] <= r.last() {
		r.tell(now, m.From)
	}
	r.advance()
}

// advance commits what a majority has on disk. An entry of an earlier term is committed by one of the present (§5.4.2).
func (r *Replica) advance() {
	for n := r.last(); n > r.commit && r.at(n) == r.disk.Term; n-- {
		have := 0
		for p := range r.peers {
			if p == r.id && r.synced >= n || p != r.id && r.match[p] >= n {
				have++
			}
		}
		if 2*have > r.peers {
			r.commit = n
			return
		}
	}
}
