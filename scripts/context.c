/* Opens the first GPU's primary context and ends: the time that any process takes that uses CUDA.
 *
 *   cc -O2 -o context scripts/context.c -ldl
 */
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
    int (*get)(int *, int) = (int (*)(int *, int))dlsym(driver, "cuDeviceGet");
    int (*retain)(void **, int) = (int (*)(void **, int))dlsym(driver, "cuDevicePrimaryCtxRetain");
    int device = 0, code = -1;
    void *context = 0;
    if (!init || !get || !retain || (code = init(0)) || (code = get(&device, 0)) || (code = retain(&context, device))) {
        fprintf(stderr, "no context: code %d\n", code);
        return 1;
    }
    return 0;
}
