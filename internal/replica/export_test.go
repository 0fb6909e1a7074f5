package replica

// Kill ends Run at once, without a message to the others.
func (r *Replica) Kill() { r.fail(errKilled) }

// ErrKilled is the error of Run after Kill.
var ErrKilled = errKilled
