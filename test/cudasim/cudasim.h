/*
 * What tests ask of the simulated driver beside the CUDA driver API.
 */
#ifndef CUDASIM_PUBLIC_H
#define CUDASIM_PUBLIC_H

/*
 * Sets faults from now on: words as in CUDASIM_FAULTS, which is read at cuInit (see
 * README.md); "" takes all faults away. Answers 0, or -1 if it does not know a word.
 */
int cudasim_fault(const char *words);

#endif
