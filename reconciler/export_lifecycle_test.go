package reconciler

// Woken is what another replica's word does.
func (r *Reconciler) Woken(topic string) { r.woken(topic) }
