package replica

// Kill ends Run at once, without a word to the others.
func (r *Replica) Kill() { r.fail(errKilled) }

// ErrKilled is what Run then returns.
var ErrKilled = errKilled
