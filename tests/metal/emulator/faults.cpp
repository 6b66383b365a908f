#include "faults.h"

#include "state.h"

#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

namespace {

constexpr int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGVTALRM};
struct sigaction before[sizeof signals / sizeof signals[0]];

volatile sig_atomic_t guarded = 0;
pthread_t guarded_thread;

const char* what_happened(int signal) {
    return signal == SIGFPE      ? "divides an integer by 0"
           : signal == SIGVTALRM ? "does not end in the time that a kernel may take"
                                 : "touches memory that is not there; checked=True says where";
}

// Not for us: what would have happened without us. Another runtime may be among those before.
void pass_on(int signal) {
    for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; ++i) {
        if (signals[i] != signal) {
            continue;
        }
        const bool is_function = (before[i].sa_flags & SA_SIGINFO) == 0 &&
                                 before[i].sa_handler != SIG_DFL && before[i].sa_handler != SIG_IGN;
        if (is_function) {
            before[i].sa_handler(signal);
        } else if (signal != SIGVTALRM) {
            sigaction(signal, &before[i], nullptr);  // and the instruction is tried again
        }
    }
}

void handle(int signal) {
    if (guarded == 0) {
        pass_on(signal);
    } else if (pthread_equal(pthread_self(), guarded_thread) == 0) {
        if (signal == SIGVTALRM) {
            pthread_kill(guarded_thread, SIGVTALRM);
        } else {
            pass_on(signal);
        }
    } else if (runtime.running != nullptr) {
        emu_fail(what_happened(signal), 0);  // does not return
    } else if (signal != SIGVTALRM) {        // which comes again, when a kernel runs
        pass_on(signal);
    }
}

void install() {
    struct sigaction action{};
    action.sa_handler = handle;
    // On a stack of its own, since the fault may be the end of a fibre's. The handler is left by
    // switching stacks, so the signal must not stay blocked.
    action.sa_flags = SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    for (unsigned i = 0; i < sizeof signals / sizeof signals[0]; ++i) {
        sigaction(signals[i], &action, &before[i]);
    }
}

void need_signal_stack() {
    stack_t stack{};
    if (sigaltstack(nullptr, &stack) == 0 && (stack.ss_flags & SS_DISABLE) == 0) {
        return;
    }
    stack.ss_flags = 0;
    stack.ss_size = 65536;
    stack.ss_sp = std::malloc(stack.ss_size);  // as long as the thread lives
    sigaltstack(&stack, nullptr);
}

// Again every tenth of a second, until it meets a kernel.
void set_timer(double seconds) {
    itimerval timer{};
    if (seconds > 0) {
        timer.it_value.tv_sec = static_cast<long>(seconds);
        timer.it_value.tv_usec = static_cast<int>((seconds - timer.it_value.tv_sec) * 1e6);
        timer.it_interval.tv_usec = 100000;
    }
    setitimer(ITIMER_VIRTUAL, &timer, nullptr);
}

}  // namespace

FaultGuard::FaultGuard(double seconds) {
    static bool installed = (install(), true);
    (void)installed;
    static thread_local bool has_stack = (need_signal_stack(), true);
    (void)has_stack;
    guarded_thread = pthread_self();
    guarded = 1;
    set_timer(seconds);
}

FaultGuard::~FaultGuard() {
    set_timer(0);
    guarded = 0;
}
