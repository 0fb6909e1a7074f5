package consensus

import "time"

// Tick does what is due: it starts an election, sends heartbeats, or steps down.
func (r *Replica) Tick(now time.Duration) {
	switch {
	case r.role == leader && r.peers > 1 && r.quorumTime()+ElectionTimeout+HeartbeatInterval < now:
		r.becomeFollower(now, r.disk.Term, -1) // the leader may be cut off while another one leads
	case now < r.nextTick:
	case r.role == leader:
		r.sendEntriesToAll(now)
	case r.disk.IsLearner:
		r.becomeFollower(now, r.disk.Term, -1)
	default:
		r.becomeCandidate(now)
	}
}

// becomeFollower makes the replica a follower.
func (r *Replica) becomeFollower(now time.Duration, term uint64, who int) {
	if term > r.disk.Term {
		r.disk.Term, r.disk.Vote, r.dirty = term, -1, true
	}
	r.role, r.leader = follower, who
	r.resetElectionTimer(now)
}

// becomeCandidate starts an election.
func (r *Replica) becomeCandidate(now time.Duration) {
	r.role, r.leader = candidate, -1
	r.disk.Term++
	r.disk.Vote, r.dirty = r.id, true
	r.votes = make([]bool, r.peers)
	r.votes[r.id] = true
	r.resetElectionTimer(now)
	for p := range r.peers {
		if p != r.id {
			r.send(Message{Type: VoteRequest, To: p, Index: r.lastIndex(), PreviousTerm: r.termAt(r.lastIndex())})
		}
	}
	r.becomeLeaderIfElected(now)
}

// becomeLeaderIfElected makes the replica the leader if a majority has voted for it.
func (r *Replica) becomeLeaderIfElected(now time.Duration) {
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
	r.next, r.match, r.lastHeard = make([]uint64, r.peers), make([]uint64, r.peers), make([]time.Duration, r.peers)
	for p := range r.peers {
		r.next[p], r.lastHeard[p] = r.lastIndex()+1, now
	}
	r.disk.Log = append(r.disk.Log[:r.lastIndex():r.lastIndex()], newEntry(r.disk.Term, nil))
	r.firstOwnEntry, r.dirty = r.lastIndex(), true
	r.sendEntriesToAll(now)
}

func (r *Replica) send(m Message) {
	m.From, m.Term = r.id, r.disk.Term
	r.outgoing = append(r.outgoing, m)
}

func (r *Replica) sendEntriesToAll(now time.Duration) {
	r.nextTick = now + HeartbeatInterval
	for p := range r.peers {
		if p != r.id {
			r.sendEntries(now, p)
		}
	}
}

// sendEntries sends a peer the entries that it may lack.
func (r *Replica) sendEntries(now time.Duration, p int) {
	before := r.next[p] - 1
	to := min(r.lastIndex(), before+maxEntriesPerMessage)
	r.send(Message{Type: AppendRequest, To: p, Index: before, PreviousTerm: r.termAt(before),
		Entries: r.disk.Log[before:to:to], Commit: r.commit, LastIndex: r.lastIndex(), SentAt: now})
	r.next[p] = to + 1 // lost entries are sent again when the peer's reply shows what it lacks
}

// HandleMessage handles a message.
func (r *Replica) HandleMessage(now time.Duration, m Message) {
	if m.Term > r.disk.Term {
		r.becomeFollower(now, m.Term, -1)
	}
	switch m.Type {
	case VoteRequest:
		r.handleVoteRequest(now, m)
	case VoteReply:
		if m.Term == r.disk.Term && r.role == candidate && m.Accepted {
			r.votes[m.From] = true
			r.becomeLeaderIfElected(now)
		}
	case AppendRequest:
		r.handleAppend(now, m)
	case AppendReply:
		r.handleAppendReply(now, m)
	}
}

func (r *Replica) handleVoteRequest(now time.Duration, m Message) {
	fresh := m.PreviousTerm > r.termAt(r.lastIndex()) || m.PreviousTerm == r.termAt(r.lastIndex()) &&
		m.Index >= r.lastIndex()
	yes := m.Term == r.disk.Term && fresh && !r.disk.IsLearner && (r.disk.Vote == -1 || r.disk.Vote == m.From)
	if yes {
		r.disk.Vote, r.dirty = m.From, true
		r.resetElectionTimer(now)
	}
	r.send(Message{Type: VoteReply, To: m.From, Accepted: yes})
}

// handleAppend handles the entries of a leader. Entries of the log that they replace were
// never committed.
func (r *Replica) handleAppend(now time.Duration, m Message) {
	if m.Term < r.disk.Term {
		r.send(Message{Type: AppendReply, To: m.From, SentAt: m.SentAt})
		return
	}
	r.becomeFollower(now, m.Term, m.From)
	if m.Index > r.lastIndex() || r.termAt(m.Index) != m.PreviousTerm {
		r.send(Message{Type: AppendReply, To: m.From, Index: min(m.Index-1, r.lastIndex()), IsLearner: r.disk.IsLearner,
			SentAt: m.SentAt})
		return
	}
	for i, e := range m.Entries {
		index := m.Index + uint64(i) + 1
		if index <= r.lastIndex() && r.termAt(index) == e.Term {
			continue
		}
		r.disk.Log = append(r.disk.Log[:index-1:index-1], m.Entries[i:]...)
		r.syncedIndex, r.dirty = min(r.syncedIndex, index-1), true
		break
	}
	same := m.Index + uint64(len(m.Entries))
	r.commit = max(r.commit, min(m.Commit, same))
	r.handleLearned(same, m.LastIndex, m.SentAt)
	r.send(Message{Type: AppendReply, To: m.From, Index: same, Accepted: true, IsLearner: r.disk.IsLearner,
		SentAt: m.SentAt})
}

func (r *Replica) handleAppendReply(now time.Duration, m Message) {
	if r.role != leader || m.Term != r.disk.Term {
		return
	}
	r.lastHeard[m.From] = max(r.lastHeard[m.From], m.SentAt)
	if m.IsLearner {
		r.match[m.From] = min(r.match[m.From], m.Index) // it no longer has what it acknowledged before
	}
	if !m.Accepted {
		r.next[m.From] = max(min(r.next[m.From], m.Index+1), r.match[m.From]+1)
		r.sendEntries(now, m.From)
		return
	}
	r.match[m.From] = max(r.match[m.From], m.Index)
	r.next[m.From] = max(r.next[m.From], m.Index+1)
	if r.next[m.From] <= r.lastIndex() {
		r.sendEntries(now, m.From)
	}
	r.advanceCommit()
}

// advanceCommit commits the entries that a majority has on disk. An entry of an earlier
// term is committed only through one of the current term (§5.4.2).
func (r *Replica) advanceCommit() {
	for n := r.lastIndex(); n > r.commit && r.termAt(n) == r.disk.Term; n-- {
		have := 0
		for p := range r.peers {
			if p == r.id && r.syncedIndex >= n || p != r.id && r.match[p] >= n {
				have++
			}
		}
		if 2*have > r.peers {
			r.commit = n
			return
		}
	}
}
