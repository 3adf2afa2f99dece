# Reads the preprocessed stub.h and writes one C function for each function of the driver: it finds
# the driver's own at the first call and jumps to it from then on.

BEGIN {
	RS = ";"
	print "#include \"stub.h\""
}

match($0, /(^|[^A-Za-z0-9_])CUresult[ \t\n]+cu[A-Z][A-Za-z0-9_]*\(/) {
	prototype = substr($0, RSTART + RLENGTH)
	name = substr($0, RSTART, RLENGTH - 1)
	sub(/^.*[ \t\n]/, "", name)
	if (name in seen)
		next
	seen[name] = 1

	gsub(/[ \t\n]+/, " ", prototype)
	sub(/\)[^)]*$/, "", prototype)
	args = ""
	n = prototype == "void" ? 0 : split(prototype, parameter, ",")
	for (i = 1; i <= n; i++) {
		sub(/ *(\[[^]]*\])* *$/, "", parameter[i])
		sub(/^.*[^A-Za-z0-9_]/, "", parameter[i])
		args = args (i > 1 ? ", " : "") parameter[i]
	}

	# The function of this name does nothing: see stub.c.
	defined = name == "cuInit" ? "ndbridge_cuInit" : name
	printf "\nCUresult %s(%s) {\n", defined, prototype
	print "\tstatic void *_Atomic stub_slot;"
	printf "\t__typeof__(%s) *stub_f = ndbridge_cuda_find(&stub_slot, \"%s\");\n", name, name
	printf "\treturn stub_f ? stub_f(%s) : ndbridge_cuda_missing();\n}\n", args
}
