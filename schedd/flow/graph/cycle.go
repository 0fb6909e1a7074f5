package graph

// setDepths visits the nodes in topological order and sets their depths. Nodes that are
// never reached are on a cycle or behind one; it returns the nodes of one cycle.
func (g *Graph) setDepths() (cycle []NodeID) {
	waits := make([]uint32, g.count)
	ready := make([]NodeID, 0, g.count)
	for id, n := range g.Nodes() {
		if waits[id], n.Depth = n.Parents, 0; n.Parents == 0 {
			ready = append(ready, id)
		}
	}
	for next := 0; next < len(ready); next++ {
		depth := g.Node(ready[next]).Depth + 1
		for _, a := range g.Children(ready[next]) {
			child := g.Node(a.Child())
			child.Depth = max(child.Depth, depth)
			if waits[a.Child()]--; waits[a.Child()] == 0 {
				ready = append(ready, a.Child())
			}
		}
	}
	if len(ready) == g.count {
		return nil
	}
	return g.findCycle(waits)
}

// pathStep is a node on the path of findCycle, and how many of its children were visited.
type pathStep struct {
	node NodeID
	next int
}

// findCycle returns the nodes of a cycle among those that still wait. It is a search in
// depth with a stack of its own, as a path may have a million nodes.
func (g *Graph) findCycle(waits []uint32) []NodeID {
	const onPath, finished = ^uint32(0), 0
	var path []pathStep
	for start := range waits {
		if waits[start] == finished {
			continue
		}
		path = append(path[:0], pathStep{node: NodeID(start)})
		waits[start] = onPath
		for len(path) > 0 {
			top := &path[len(path)-1]
			children := g.Children(top.node)
			if top.next == len(children) {
				waits[top.node] = finished
				path = path[:len(path)-1]
				continue
			}
			child := children[top.next].Child()
			top.next++
			switch waits[child] {
			case onPath:
				return cycleFrom(path, child)
			case finished:
			default:
				waits[child] = onPath
				path = append(path, pathStep{node: child})
			}
		}
	}
	panic("graph: nodes wait for ever, and there is no cycle")
}

// cycleFrom is the end of a path from the node first on.
func cycleFrom(path []pathStep, first NodeID) (cycle []NodeID) {
	for i := range path {
		if cycle != nil || path[i].node == first {
			cycle = append(cycle, path[i].node)
		}
	}
	return cycle
}
