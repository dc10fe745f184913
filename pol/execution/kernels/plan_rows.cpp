// Recognises folds that rows.cpp can run.
#include "plan.h"

namespace pol {

bool PlannedNode::find_rows() { return false; }

}  // namespace pol
