package hostplugin

// checkSystem says whether programs can run here.
func checkSystem() error { return nil }
